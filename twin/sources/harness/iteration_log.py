"""Logs of MQ-CPH and PerfHarness: a command line, a line per interval, a summary in the end.

Both print `name=value` pairs, with the numbers of their machine's locale. A log may hold several runs one
after the other, each under its own command line. Lines as the tools print them are taken by the column;
whatever looks otherwise is looked at one by one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from twin.sources.harness.command_line import Told, is_command_line, told_by
from twin.sources.harness.recording import Lines, Recorded, Recording, RunFormat, SummaryFigure

_ITERATIONS = "totalIterations"
_PAIR = re.compile(r"([A-Za-z][A-Za-z ()]*)=(.*?)(?=,[A-Za-z][A-Za-z ()]*=|$)")
# 16648.00, 16,648.00, 16.648,00, 16 648,00: two digits follow the decimal mark, three a grouping one
_NUMBER = re.compile(r"(\d+|\d{1,3}(?:[.,]\d{3})+)(?:[.,](\d{1,2}))?")
_SPACES = re.compile(r"[\s'\u00a0\u202f]")
_PLAIN = r"[0-9]+(?:\.[0-9]+)?"

# what an interval's names are here, and by how much their numbers are divided
_SAMPLE_COLUMNS = {
    "rate": ("rate_msgs_per_s", 1),
    "rateR": ("rate_msgs_per_s", 1),
    "tps": ("rate_msgs_per_s", 1),
    "threads": ("threads", 1),
    "total messages": ("messages", 1),
    "Snapshot period": ("interval_s", 1),
    "avgResponse(micros)": ("latency_mean_ms", 1000),
    "avg_latency(uSec)": ("latency_mean_ms", 1000),
    "max_latency(uSec)": ("latency_max_ms", 1000),
    "min_latency(uSec)": ("latency_min_ms", 1000),
}
_RATES = ("rate", "rateR", "tps")
_COUNTS = ("line", "threads")


@dataclass
class _Head:
    """Where a run starts, and what its own lines say beside its intervals."""

    line: int
    told: Told = field(default_factory=Told)
    summaries: list[tuple[int, dict[str, str]]] = field(default_factory=list)


def plain_number(printed: str) -> str:
    """A printed number with a point before its decimals and nothing else; what is none stays as it is."""
    match = _NUMBER.fullmatch(_SPACES.sub("", printed))
    if match is None:
        return printed
    whole = re.sub(r"\D", "", match[1])
    return f"{whole}.{match[2]}" if match[2] else whole


def iteration_log(
    name: str, intervals: Sequence[Sequence[str]], metrics: Mapping[str, str], summary: re.Pattern[str]
) -> RunFormat:
    """A format by its lines. `intervals`: the names on a line of intervals, for each way that the tool has;
    `metrics`: what the numbers of a summary are."""

    def recognises(first_lines: Sequence[str]) -> bool:
        named = [{*_pairs(one)} for one in first_lines]
        return any({*one} <= names for one in intervals for names in named) or any(
            summary.fullmatch(one.strip()) for one in first_lines
        )

    return RunFormat(
        name=name,
        suffixes=(".log", ".out", ".txt"),
        recognises=recognises,
        read=lambda lines: _read(lines, intervals, metrics),
    )


def _read(lines: Lines, intervals: Sequence[Sequence[str]], metrics: Mapping[str, str]) -> Recording:
    columns, left = _plain_intervals(lines.texts, intervals)
    heads = [_Head(1)]
    unread = 0
    for place in left.tolist():
        line, text = place + 1, lines.at(place + 1)
        if _ITERATIONS in text:
            heads[-1].summaries.append((line, _pairs(text)))
        elif (values := _interval(text)) is not None:
            _put(columns, place, values, len(lines))
        elif is_command_line(text):
            heads.append(_Head(line, told_by(text)))
        elif text.strip():
            unread += 1
    samples = _table(columns)
    processes = _processes(lines)
    starts = np.searchsorted(samples["line"].to_numpy(), [*(head.line for head in heads[1:]), len(lines) + 1])
    runs = []
    first = 0
    for head, end in zip(heads, starts.tolist(), strict=True):
        if end > first or head.summaries:
            runs.append(_run(head, samples.slice(first, end - first), metrics, processes))
        first = end
    return Recording(runs, unread)


def _processes(lines: Lines) -> pa.StringArray | None:
    """The id in front of each line, where the tool was told to print one."""
    if not (lines.raw.startswith(b"id=") or b"\nid=" in lines.raw):
        return None
    return pc.struct_field(pc.extract_regex(lines.texts, r"^id=(?P<id>[0-9]+),"), "id")


def _plain_intervals(
    texts: pa.StringArray, intervals: Sequence[Sequence[str]]
) -> tuple[dict[str, npt.NDArray[np.float64]], npt.NDArray[np.int64]]:
    """Columns with a place for every line, and the places of lines that look otherwise."""
    columns: dict[str, npt.NDArray[np.float64]] = {}
    left = np.arange(len(texts))
    for names in intervals:
        asked = texts if len(left) == len(texts) else texts.take(pa.array(left))
        found = pc.extract_regex(asked, _pattern(names))
        fits = np.asarray(found.is_valid())
        if not fits.any():
            continue
        matched = found.filter(pa.array(fits)) if not fits.all() else found
        places = left[fits]
        for at, name in enumerate(names):
            numbers = matched.field(f"n{at}").cast(pa.float64()).to_numpy(zero_copy_only=False)
            column, divisor = _SAMPLE_COLUMNS[name]
            _column(columns, column, len(texts))[places] = numbers / divisor if divisor > 1 else numbers
        left = left[~fits]
    return columns, left


def _pattern(names: Sequence[str]) -> str:
    pairs = ",".join(f"{re.escape(name)}=(?P<n{at}>{_PLAIN})" for at, name in enumerate(names))
    return rf"^(?:id=[0-9]+,)?{pairs}\r?\n?$"


def _column(columns: dict[str, npt.NDArray[np.float64]], name: str, size: int) -> npt.NDArray[np.float64]:
    if name not in columns:
        columns[name] = np.full(size, np.nan)
    return columns[name]


def _interval(text: str) -> dict[str, float] | None:
    """Numbers with the marks of a locale, or names in another order."""
    pairs = _pairs(text)
    if "threads" not in pairs or not any(name in pairs for name in _RATES):
        return None
    values = {}
    for name in pairs.keys() & _SAMPLE_COLUMNS.keys():
        column, divisor = _SAMPLE_COLUMNS[name]
        number = plain_number(pairs[name])
        if not _NUMBER.fullmatch(number):
            return None
        values[column] = float(number) / divisor
    return values


def _put(
    columns: dict[str, npt.NDArray[np.float64]], place: int, values: Mapping[str, float], size: int
) -> None:
    for name, value in values.items():
        _column(columns, name, size)[place] = value


def _table(columns: Mapping[str, npt.NDArray[np.float64]]) -> pa.Table:
    if not columns:
        return pa.table({"line": pa.array([], pa.int64())})
    places = np.flatnonzero(~np.isnan(columns["rate_msgs_per_s"]))
    everywhere = len(places) == len(columns["rate_msgs_per_s"])
    arrays: dict[str, Any] = {"line": places + 1}
    for name, values in columns.items():
        mine = values if everywhere else values[places]
        arrays[name] = pa.array(mine, from_pandas=True)
    table = pa.table(arrays)
    for at, name in enumerate(table.column_names):
        if name in _COUNTS:
            table = table.set_column(at, name, table[name].cast(pa.int64()))
    return table


def _run(
    head: _Head,
    samples: pa.Table,
    metrics: Mapping[str, str],
    processes: pa.StringArray | None,
) -> Recorded:
    told = head.told
    places = samples["line"].to_numpy() - 1
    several = processes is not None and pc.count_distinct(processes.take(pa.array(places))).as_py() > 1
    if told.interval_s and "interval_s" not in samples.column_names and len(samples):
        # the tool prints no clock: intervals follow each other
        ends = np.arange(1, len(samples) + 1) * told.interval_s
        samples = samples.append_column("at_s", pa.array(ends))
        samples = samples.append_column("interval_s", pa.array(np.full(len(samples), told.interval_s)))
    figures = [
        _figure(line, name, printed, metrics)
        for line, summary in head.summaries
        for name, printed in summary.items()
    ]
    return Recorded(
        line=head.line if head.told.columns or not len(samples) else samples["line"][0].as_py(),
        samples=samples,
        told=told.columns,
        loop=told.loop,
        requested_msgs_per_s=told.requested_msgs_per_s,
        summary=figures,
        problem=told.problem or _problem(head, figures, several),
    )


def _figure(line: int, name: str, printed: str, metrics: Mapping[str, str]) -> SummaryFigure:
    number = plain_number(printed)
    value = float(number) if _NUMBER.fullmatch(number) else None
    return SummaryFigure(line, name, printed, metrics.get(name), value)


def _problem(head: _Head, figures: Sequence[SummaryFigure], several: bool) -> str | None:
    if several or len(head.summaries) > 1:
        return "the output of several processes under one command line"
    unread = [one for one in figures if one.metric and one.value is None]
    return f"line {unread[0].line}: {unread[0].header}={unread[0].printed} is no number" if unread else None


def _pairs(text: str) -> dict[str, str]:
    return {name.strip(): value.strip() for name, value in _PAIR.findall(text.strip())}
