"""A slower server for tests: a process of our own that is stopped for part of the time."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress

import psutil

# short against a measurement, long against a switch of processes
_PERIOD_S = 0.1


class NotOurs(ValueError):
    """A process that this one did not start."""


class Throttled:
    """The process runs for this share of the time and is stopped for the rest of each tenth of a second; it
    runs when this ends, however that comes. Only for processes that we started."""

    def __init__(self, process_id: int, share: float) -> None:
        if not 0 < share <= 1:
            raise ValueError(f"a process cannot run for {share:g} of the time: more than 0 and at most 1")
        self._process, self._share = psutil.Process(process_id), share
        if os.getpid() not in (parent.pid for parent in self._process.parents()):
            raise NotOurs(f"process {process_id} was not started here: it is not ours to stop")
        self._ended = threading.Event()
        self._pacing = threading.Thread(target=self._pace, daemon=True)

    def __enter__(self) -> Throttled:
        self._pacing.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        self._pacing.join()

    def _pace(self) -> None:
        """On an absolute clock: a late wake-up does not add up. psutil makes sure that it is still the same
        process; one that has ended needs no more of it."""
        period = time.monotonic()
        with suppress(psutil.NoSuchProcess):
            try:
                while not self._ended.wait(max(period + self._share * _PERIOD_S - time.monotonic(), 0)):
                    period += _PERIOD_S
                    if self._share < 1:
                        self._process.suspend()
                    self._ended.wait(max(period - time.monotonic(), 0))
                    self._process.resume()
            finally:
                self._process.resume()
