"""Ctrl-C that is not lost.

Python raises a KeyboardInterrupt wherever the main thread is. In a destructor or a callback of the garbage
collector it cannot be raised, and is forgotten; a job that runs for minutes then goes on as if nobody had
asked.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def remembered_interrupt() -> Iterator[Callable[[], None]]:
    """Gives a function to call now and then: it raises the interrupt that got lost."""
    asked = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.default_int_handler(number, frame)

    def raise_lost() -> None:
        if asked.is_set():
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield raise_lost
    finally:
        signal.signal(signal.SIGINT, before)
