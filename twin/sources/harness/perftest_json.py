"""Results of RabbitMQ PerfTest's scenarios: an object by the scenario's name, with `samples` in it.

A scenario that varies its options has one such object for each combination of their values, nested under
`data` in the order of `dimensions`. Times are milliseconds since the start, latencies microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from twin.sources.documents import Refused
from twin.sources.harness.json_places import Node, located
from twin.sources.harness.perftest import MICROS_PER_MILLI, TOLD, Floats, samples
from twin.sources.harness.recording import Lines, Recorded, Recording, RunFormat, SummaryFigure

_SAMPLES, _DATA, _DIMENSIONS, _ELAPSED = "samples", "data", "dimensions", "elapsed"
_SENT, _RECEIVED = "send-msg-rate", "recv-msg-rate"
_KEY = re.compile(r'"(?:(?:send|recv)-(?:msg|bytes)-rate|dimension-values)"\s*:')
_MILLIS_PER_S = 1000
_LATENCIES = {
    "min-latency": "latency_min_ms",
    "avg-latency": "latency_mean_ms",
    "max-latency": "latency_max_ms",
}
_SUMMARY = {
    _RECEIVED: "average_msgs_per_s",
    _SENT: "average_sent_msgs_per_s",
    "avg-latency": "latency_mean_ms",
}
# columns by the options that a scenario may vary
_VARIED = {
    "producerCount": "producers",
    "consumerCount": "consumers",
    "minMsgSize": "message_bytes",
    "confirm": "window",
    "consumerPrefetch": "prefetch",
    "prefetchCount": "prefetch",
    "producerTxSize": "messages_per_commit",
}
_RATE_LIMIT = "producerRateLimit"
# the tool's own summary leaves these out
_WARM_UP_SAMPLES = 3
_ANOTHER_UNIT = 1000


def _recognises(first_lines: Sequence[str]) -> bool:
    text = "\n".join(first_lines)
    return text.lstrip().startswith("{") and _KEY.search(text) is not None


def _read(lines: Lines) -> Recording:
    runs: list[Recorded] = []
    # places of what has none
    empty: list[int] = []
    for scenario in (located(lines).members or {}).values():
        results = list(_results(scenario, []))
        runs += [_recorded(lines, result, varied) for result, varied in results if result.listed(_SAMPLES)]
        empty += [one.key_at for one, _ in results or [(scenario, [])] if not one.listed(_SAMPLES)]
    if not runs:
        raise Refused(f"{lines.name} line {_line(lines, min(empty, default=0))}: no {_SAMPLES}")
    return Recording(runs, len(empty))


def _results(scenario: Node, varied: list[tuple[str, str]]) -> Iterator[tuple[Node, list[tuple[str, str]]]]:
    """Results of a scenario, each with the values of the options that it varies."""
    if scenario.get(_SAMPLES) is not None:
        yield scenario, varied
        return
    dimensions = [one.text.strip('"') for one in scenario.listed(_DIMENSIONS)]
    data = scenario.get(_DATA)
    level = [(data, varied)] if data is not None and dimensions else []
    for dimension in dimensions:
        level = [
            (node, [*values, (dimension, value)])
            for above, values in level
            for value, node in (above.members or {}).items()
        ]
    yield from level


def _recorded(lines: Lines, result: Node, varied: Sequence[tuple[str, str]]) -> Recorded:
    nodes = result.listed(_SAMPLES)
    at_s = _column(nodes, _ELAPSED) / _MILLIS_PER_S
    received, sent = _column(nodes, _RECEIVED), _column(nodes, _SENT)
    # the rate is printed whether or not there are consumers
    receives = bool((received > 0).any())
    table = samples(
        lines.line_of([node.at for node in nodes]),
        at_s,
        received if receives else np.full(len(nodes), np.nan),
        sent,
        {name: _column(nodes, key) / MICROS_PER_MILLI for key, name in _LATENCIES.items()},
    )
    stands = len(nodes) > 1 and bool((at_s == at_s[0]).all())
    return Recorded(
        line=_line(lines, result.key_at),
        samples=table,
        told=TOLD | {_VARIED[name]: _whole(value) for name, value in varied if name in _VARIED},
        loop="paced" if any(name == _RATE_LIMIT for name, _ in varied) else "unknown",
        summary=_summary(lines, result, {_RECEIVED: received, _SENT: sent}, receives),
        # versions that do so also print rates in another unit
        problem=f"its clock stands still: each of its samples has the same {_ELAPSED}" if stands else None,
    )


def _column(nodes: Sequence[Node], key: str) -> Floats:
    found = [node.get(key) for node in nodes]
    return np.array([one.number if one else None for one in found], dtype=float)


def _whole(value: str) -> str:
    """Values are printed as texts, whole numbers with a point."""
    return value.removesuffix(".0")


def _summary(lines: Lines, result: Node, rates: dict[str, Floats], receives: bool) -> list[SummaryFigure]:
    figures = []
    for key, node in result.plain():
        value, metric = node.number, _SUMMARY.get(key)
        if key == _SENT and not receives:
            metric = "average_msgs_per_s"
        elif key == _RECEIVED and not receives:
            metric = None
        if value is not None and key in _LATENCIES:
            value /= MICROS_PER_MILLI
        if key in rates and _in_another_unit(value, rates[key]):
            metric = None
        figures.append(SummaryFigure(_line(lines, node.key_at), key, node.text, metric, value))
    return figures


def _in_another_unit(printed: float | None, rates: Floats) -> bool:
    """Some versions divide by nanoseconds as if they were milliseconds: far below what every sample says."""
    steady = rates[_WARM_UP_SAMPLES:]
    known = steady[~np.isnan(steady)]
    return bool(printed and len(known) and known.mean() > _ANOTHER_UNIT * printed)


def _line(lines: Lines, place: int) -> int:
    return int(lines.line_of([place])[0])


FORMAT = RunFormat(name="perftest-json", suffixes=(".json",), recognises=_recognises, read=_read)
