"""What a run does, counted in intervals on an absolute clock: messages, latencies, processor time.

Latencies go from the moment at which a message was to be sent. Where the load is made by the clock a pause of
the broker therefore shows in every message that it held up, not in one alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any

import numpy as np
import psutil
from hdrh.histogram import HdrHistogram

_US = 1_000_000
# histograms hold from a microsecond to ten minutes with three digits
_LONGEST_US, _DIGITS = 600 * _US, 3
_PERCENTILES = {"p50": 50, "p75": 75, "p95": 95, "p99": 99}
_TAIL = {"p999": 99.9, "p9999": 99.99}

clock = perf_counter


class ProcessorTime:
    """Seconds that some processes have used so far; one that has ended counts no more."""

    def __init__(self, process_ids: Sequence[int]) -> None:
        self._processes = []
        for process_id in process_ids:
            with suppress(psutil.Error):
                self._processes.append(psutil.Process(process_id))

    def __bool__(self) -> bool:
        return bool(self._processes)

    def seconds(self) -> float:
        used = 0.0
        for process in self._processes:
            with suppress(psutil.Error):
                times = process.cpu_times()
                used += times.user + times.system
        return used


class Meter:
    """Counts of one run. Drivers call `sent` and `done`; who runs them calls `begin` after the warm-up,
    `tick` at the end of each interval, and `summary` last."""

    def __init__(self, **processors: ProcessorTime) -> None:
        """`processors`: who is paid for, by the first word of a metric: broker, worker, driver. Load and
        broker share the machine: how busy it is says little about either, their time per message does."""
        self.processors = processors
        self.samples: list[dict[str, Any]] = []
        self._latencies: list[float] = []
        self._histogram = HdrHistogram(1, _LONGEST_US, _DIGITS)
        self.begin()

    def sent(self, count: int = 1) -> None:
        self._sent += count

    def done(self, intended: float | None = None) -> None:
        """One more message has gone all the way; `intended` is when it was to be sent."""
        self._done += 1
        self.messages += 1
        if intended is not None:
            self._latencies.append(intended)
            self._latencies.append(clock())

    def begin(self) -> None:
        """What was counted so far was warm-up."""
        self._started = self._ticked = clock()
        self._used = self._used_at_tick = self._processor_seconds()
        self._sent = self._done = self.messages = 0
        self._latencies.clear()
        self._histogram.reset()
        self.samples.clear()

    def tick(self) -> None:
        now = clock()
        interval = now - self._ticked
        self.samples.append({
            "at_s": round(now - self._started, 6),
            "interval_s": round(interval, 6),
            "rate_msgs_per_s": round(self._done / interval, 3),
            "sent_msgs_per_s": round(self._sent / interval, 3),
            "messages": self._done,
            **self._interval_latencies(),
        })  # fmt: skip
        # workers may be gone when the summary is asked for
        self._ticked, self._used_at_tick = now, self._processor_seconds()
        self._sent = self._done = 0

    def summary(self) -> dict[str, float]:
        """Figures of the whole run, by their metrics."""
        found: dict[str, float] = {"messages": self.messages, "run_s": round(self._ticked - self._started, 6)}
        if self.messages and found["run_s"]:
            found["average_msgs_per_s"] = round(self.messages / found["run_s"], 3)
            for one, seconds in self._used_at_tick.items():
                if self.processors[one]:
                    # one that was killed in between takes its seconds with it
                    spent = max(seconds - self._used[one], 0.0) * 1000 / self.messages
                    found[f"{one}_cpu_ms_per_msg"] = round(spent, 6)
            if "broker_cpu_ms_per_msg" in found:
                parts = (value for name, value in found.items() if name.endswith("_cpu_ms_per_msg"))
                found["cpu_ms_per_msg"] = round(sum(parts), 6)
        if self._histogram.get_total_count():
            found["latency_min_ms"] = self._histogram.get_min_value() / 1000
            found["latency_mean_ms"] = round(self._histogram.get_mean_value() / 1000, 4)
            for name, percent in (_PERCENTILES | _TAIL).items():
                found[f"latency_{name}_ms"] = self._histogram.get_value_at_percentile(percent) / 1000
            found["latency_max_ms"] = self._histogram.get_max_value() / 1000
        return {name: value for name, value in found.items() if value > 0 or name == "messages"}

    def _interval_latencies(self) -> dict[str, float]:
        if not self._latencies:
            return {}
        pairs = np.array(self._latencies).reshape(-1, 2)
        self._latencies.clear()
        micros = np.clip((pairs[:, 1] - pairs[:, 0]) * _US, 1, _LONGEST_US).astype(np.int64)
        for value, count in zip(*np.unique(micros, return_counts=True), strict=True):
            self._histogram.record_value(int(value), int(count))
        found = {
            "latency_min_ms": micros.min() / 1000,
            "latency_mean_ms": micros.mean() / 1000,
            "latency_max_ms": micros.max() / 1000,
        }
        for name, value in zip(_PERCENTILES, np.percentile(micros, list(_PERCENTILES.values())), strict=True):
            found[f"latency_{name}_ms"] = value / 1000
        return {name: round(float(value), 4) for name, value in found.items()}

    def _processor_seconds(self) -> dict[str, float]:
        return {one: processes.seconds() for one, processes in self.processors.items()}
