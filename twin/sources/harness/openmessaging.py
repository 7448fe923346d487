"""Result files of the OpenMessaging Benchmark: a JSON object with an array for each quantity of an interval.

Latencies are milliseconds, delays of publishing microseconds. The tool begins to count after its warm-up. It
sends by the clock and reports how late it was, but times a message from when it was really sent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from twin.sources.documents import Refused
from twin.sources.harness.json_places import Node, located
from twin.sources.harness.recording import Lines, Recorded, Recording, RunFormat, SummaryFigure

_SENT, _RECEIVED, _BACKLOG = "publishRate", "consumeRate", "backlog"
_KEY = re.compile(
    r'"(?:publishRate|consumeRate|publishErrorRate|producersPerTopic|consumersPerTopic'
    r'|(?:aggregatedP|p)ublish(?:Delay)?Latency\w+|(?:aggregatedE|e)ndToEndLatency\w+)"\s*:'
)
_END_TO_END, _PUBLISH = "endToEndLatency", "publishLatency"
_AGGREGATED = "aggregated"
# seconds between two samples, where the file does not say it
_INTERVAL_S = 10.0
_INTERVAL_MILLIS = "sampleRateMillis"
_STATISTICS = {
    "Avg": "latency_mean_ms",
    "50pct": "latency_p50_ms",
    "75pct": "latency_p75_ms",
    "95pct": "latency_p95_ms",
    "99pct": "latency_p99_ms",
    "999pct": "latency_p999_ms",
    "9999pct": "latency_p9999_ms",
    "Max": "latency_max_ms",
}
# a sample has no column for these
_SUMMARY_ONLY = ("999pct", "9999pct")
# columns and the counts that they are the product of
_COUNTS = {
    "message_bytes": ("messageSize",),
    "producers": ("producersPerTopic", "topics"),
    "consumers": ("consumersPerTopic", "topics"),
    "queues": ("topics", "partitions"),
}
# consumers are counted per subscription, of which only some versions tell the number
_SUBSCRIPTIONS = "subscriptionsPerTopic"
_DAY = re.compile(r'"([0-9]{4}-[0-9]{2}-[0-9]{2})')


def _recognises(first_lines: Sequence[str]) -> bool:
    text = "\n".join(first_lines)
    return text.lstrip().startswith("{") and _KEY.search(text) is not None


def _read(lines: Lines) -> Recording:
    root = located(lines)
    size = max(len(root.listed(key)) for key in (_SENT, _RECEIVED))
    if not size:
        raise Refused(f"{lines.name} line 1: {_SENT} and {_RECEIVED} have no samples")
    told = _told(root)
    measured = _END_TO_END if _has_latencies(root) else _PUBLISH
    begin = root.get("beginTime")
    day = _DAY.match(begin.text) if begin else None
    run = Recorded(
        line=int(lines.line_of([root.at])[0]),
        samples=_samples(lines, root, size, measured, told.get("consumers", "0") != "0"),
        told=told,
        loop="paced",
        summary=_summary(lines, root, measured),
        measured_at=day[1] if day else None,
    )
    return Recording([run])


def _told(root: Node) -> dict[str, str]:
    told = {"family": "point_to_point"}
    subscriptions = _number(root, _SUBSCRIPTIONS)
    for column, keys in _COUNTS.items():
        counts = [_number(root, key) for key in keys]
        if column == "consumers" and subscriptions is not None:
            counts.append(subscriptions)
        known = [count for count in counts if count is not None]
        if len(known) == len(counts):
            told[column] = f"{math.prod(known):.0f}"
    return told


def _number(root: Node, key: str) -> float | None:
    node = root.get(key)
    return node.number if node else None


def _has_latencies(root: Node) -> bool:
    """Without consumers all of them are 0."""
    return any(node.number for name in _STATISTICS for node in root.listed(_END_TO_END + name))


def _samples(lines: Lines, root: Node, size: int, measured: str, consumed: bool) -> pa.Table:
    interval_s = (_number(root, _INTERVAL_MILLIS) or _INTERVAL_S * 1000) / 1000
    sent, received = _column(root, _SENT, size), _column(root, _RECEIVED, size)
    receives = consumed or any(received)
    columns: dict[str, Sequence[float | None]] = {
        "at_s": [interval_s * (at + 1) for at in range(size)],
        "interval_s": [interval_s] * size,
        "rate_msgs_per_s": received if receives else sent,
        "sent_msgs_per_s": sent,
        _BACKLOG + "_msgs": _column(root, _BACKLOG, size),
    }
    for name, column in _STATISTICS.items():
        if name not in _SUMMARY_ONLY:
            columns[column] = _column(root, measured + name, size)
    places = _places(root, size, (_RECEIVED, _SENT) if receives else (_SENT, _RECEIVED))
    printed = {name: values for name, values in columns.items() if any(one is not None for one in values)}
    return pa.table(
        {
            "line": pa.array(lines.line_of(np.array(places)), pa.int64()),
            **{name: pa.array(values, pa.float64()) for name, values in printed.items()},
        }
    )


def _column(root: Node, key: str, size: int) -> list[float | None]:
    values = [node.number for node in root.listed(key)[:size]]
    return values + [None] * (size - len(values))


def _places(root: Node, size: int, keys: Sequence[str]) -> list[int]:
    """Where the rates stand: of two arrays the first that is long enough."""
    arrays = [root.listed(key) for key in keys]
    return [next(nodes[at].at for nodes in arrays if at < len(nodes)) for at in range(size)]


def _summary(lines: Lines, root: Node, measured: str) -> list[SummaryFigure]:
    meant = {_AGGREGATED + measured[0].upper() + measured[1:] + name: of for name, of in _STATISTICS.items()}
    return [
        SummaryFigure(int(lines.line_of([node.key_at])[0]), key, node.text, meant.get(key), node.number)
        for key, node in root.plain()
        if key.startswith(_AGGREGATED)
    ]


FORMAT = RunFormat(name="openmessaging", suffixes=(".json",), recognises=_recognises, read=_read)
