"""What the three kinds of files of RabbitMQ PerfTest have in common: names, units, a run's columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

# PerfTest moves messages from producers through queues to consumers, whatever its options are
TOLD = {"family": "point_to_point"}
# a latency's column and metric, by what PerfTest calls it
LATENCIES = {
    "min": "latency_min_ms",
    "avg": "latency_mean_ms",
    "median": "latency_p50_ms",
    "75th": "latency_p75_ms",
    "95th": "latency_p95_ms",
    "99th": "latency_p99_ms",
    "max": "latency_max_ms",
}
MILLISECONDS = "ms"
MICROS_PER_MILLI = 1000
# Microseconds as versions spell them. Where the console has no such letter it prints a question mark, or the
# letter's two bytes as letters.
UNIT = rf"(?:{MILLISECONDS}|(?:Â?µ|μ|\?|u|micro-)s|microseconds)"


def divisor(unit: str) -> int:
    return 1 if unit == MILLISECONDS else MICROS_PER_MILLI


def samples(
    lines: Places, at_s: Floats, received: Floats, sent: Floats, latencies: Mapping[str, Floats]
) -> pa.Table:
    """The intervals of one run; NaN is what was not printed. Where nobody receives, what was sent counts."""
    columns = {
        "at_s": at_s,
        "interval_s": _intervals(at_s),
        "rate_msgs_per_s": sent if np.isnan(received).all() else received,
        "sent_msgs_per_s": sent,
        **latencies,
    }
    printed = {name: values for name, values in columns.items() if not np.isnan(values).all()}
    return pa.table(
        {
            "line": pa.array(lines, pa.int64()),
            **{name: pa.array(values, pa.float64(), from_pandas=True) for name, values in printed.items()},
        }
    )


def places_by(keys: Places) -> Iterator[Places]:
    """Places of equal keys together, those that come first at first."""
    order = np.argsort(keys, kind="stable")
    ends = np.flatnonzero(np.diff(keys[order])) + 1
    yield from sorted(np.split(order, ends) if len(order) else [], key=lambda places: int(places[0]))


def _intervals(at_s: Floats) -> Floats:
    """From one moment to the next; a clock that went back says nothing of the interval's length."""
    lengths = np.diff(at_s, prepend=0.0)
    if len(lengths) and lengths[0] == 0:
        lengths[0] = np.nan
    return np.where(lengths >= 0, lengths, np.nan)
