"""What RabbitMQ PerfTest prints: a line per interval, a summary in the end, each with the id of its run.

Lines of two processes in one file are told apart by their ids. Old versions print `time: 1.000s`, call the
percentiles `latency` and give it as min/avg/max, and the oldest have no ids.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twin.sources.documents import Refused
from twin.sources.harness.command_line import Told
from twin.sources.harness.perftest import (
    LATENCIES,
    MICROS_PER_MILLI,
    MILLISECONDS,
    TOLD,
    UNIT,
    Floats,
    Places,
    divisor,
    places_by,
    samples,
)
from twin.sources.harness.perftest_command import told_by
from twin.sources.harness.recording import Lines, Recorded, Recording, RunFormat, SummaryFigure

# decimals stand behind the mark of the machine's locale; nothing is grouped
_NUMBER = r"-?[0-9]+(?:[.,][0-9]+)?"
_ID = r"(?:id: (?P<id>[^,]+?)(?:,| -) )?"
_VALUES = r"-?[0-9]+(?:/-?[0-9]+)+"
_LABEL = r"min/[a-z0-9/]+"
_INTERVAL = (
    rf"^\s*{_ID}time:? (?P<at>{_NUMBER}) ?s"
    rf"(?:, sent: (?P<sent>{_NUMBER}) msg/s)?"
    rf"(?:, (?:returned|confirmed|nacked): {_NUMBER} msg/s)*"
    rf"(?:, received: (?P<received>{_NUMBER}) msg/s)?"
    rf"(?:, (?P<label>{_LABEL}) (?:consumer |confirm )?latency: (?P<values>{_VALUES}) (?P<unit>{UNIT}))?"
    rf"(?:, confirm latency: {_VALUES} {UNIT})?\s*$"
)
_ONE_INTERVAL = re.compile(_INTERVAL)
_PARTS = ("id", "at", "sent", "received", "label", "values", "unit")
# those that change from line to line; a pattern with no more groups is matched several times as fast
_VARYING = ("at", "sent", "received", "values")
_MOST_SHAPES = 8
_FEW_LINES = 10_000
_RATE = re.compile(rf"{_ID}(?P<header>(?P<way>send|receiv|recv)ing rate avg): (?P<printed>{_NUMBER}) msg/s")
_LATENCY = re.compile(
    rf"{_ID}(?P<header>(?:consumer|confirm) latency) (?P<label>{_LABEL}) "
    rf"(?P<values>{_VALUES}) (?P<unit>{UNIT})"
)
_STARTING = re.compile(rf"{_ID}starting (?:consumer|producer) #[0-9].*")
_COMMENT = re.compile(r"#.*|test stopped \(.*")
_RATES = ("received", "sent")


@dataclass(frozen=True)
class _Shape:
    """Lines that differ in few of their parts."""

    pattern: str
    fixed: Mapping[str, str] = field(default_factory=dict)


_ANY_SHAPE = _Shape(_INTERVAL)


@dataclass(frozen=True)
class _Intervals:
    """All intervals of a file by the column, NaN where a line does not say it."""

    lines: Places
    ids: pa.DictionaryArray
    columns: dict[str, Floats]

    def only(self, keep: Places) -> _Intervals:
        columns = {name: values[keep] for name, values in self.columns.items()}
        return _Intervals(self.lines[keep], self.ids.take(pa.array(keep)), columns)


@dataclass
class _Notes:
    """What stands between the intervals."""

    # with the id that their run has
    figures: list[tuple[str, SummaryFigure]] = field(default_factory=list)
    commands: list[tuple[int, Told, str | None]] = field(default_factory=list)
    unread: int = 0


@dataclass
class _Run:
    name: str
    places: Places
    figures: list[SummaryFigure] = field(default_factory=list)


def _recognises(first_lines: Sequence[str]) -> bool:
    patterns = (_ONE_INTERVAL, _RATE, _STARTING)
    texts = [line.strip() for line in first_lines]
    return any(told_by(text) or any(one.fullmatch(text) for one in patterns) for text in texts)


def _read(lines: Lines) -> Recording:
    parts, places, left = _interval_lines(lines.texts)
    intervals, odd = _intervals(parts, places + 1)
    if not lines.raw.endswith(b"\n"):
        whole = _without_cut_end(intervals, len(lines))
        odd += len(intervals.lines) - len(whole.lines)
        intervals = whole
    notes = _notes(lines, left + 1)
    runs = _runs(intervals, notes)
    if not runs:
        raise Refused(f"{lines.name} line 1: no line is an interval or a summary of PerfTest")
    told = _claimed(runs, intervals, notes)
    return Recording(
        [_recorded(run, intervals, *of) for run, of in zip(runs, told, strict=True)], notes.unread + odd
    )


def _interval_lines(texts: pa.StringArray) -> tuple[dict[str, pa.StringArray], Places, Places]:
    """The parts of the lines that are intervals, their places, and those of the others."""
    left = np.arange(len(texts))
    parts: dict[str, list[pa.StringArray]] = {name: [] for name in _PARTS}
    places = []
    for attempt in range(_MOST_SHAPES + 1):
        asked = texts.take(pa.array(left)) if len(left) < len(texts) else texts
        shape = _shape(asked) if attempt < _MOST_SHAPES else _ANY_SHAPE
        if shape is None:
            continue
        found = pc.extract_regex(asked, shape.pattern)
        fits = np.asarray(found.is_valid())
        found = found.filter(pa.array(fits))
        for name in _PARTS:
            fixed = shape.fixed.get(name)
            parts[name].append(found.field(name) if fixed is None else pa.repeat(fixed, len(found)))
        places.append(left[fits])
        left = left[~fits]
    order = np.argsort(np.concatenate(places), kind="stable")
    together = {name: pa.concat_arrays(arrays).take(pa.array(order)) for name, arrays in parts.items()}
    return together, np.concatenate(places)[order], left


def _shape(texts: pa.StringArray) -> _Shape | None:
    """What lines that look like the first interval have in common; None where it is not worth the while."""
    if len(texts) < _FEW_LINES:
        return None
    first = pc.extract_regex(texts.slice(0, _FEW_LINES), _INTERVAL).is_valid().index(True).as_py()
    match = _ONE_INTERVAL.match(texts[first].as_py()) if first >= 0 else None
    if match is None:
        return None
    end = match.start("at")
    pattern = f"^{re.escape(match.string[:end])}"
    for name in _VARYING:
        if match[name] is not None:
            kind = _VALUES if name == "values" else _NUMBER
            pattern += _fixed(match.string[end : match.start(name)]) + f"(?P<{name}>{kind})"
            end = match.end(name)
    fixed = {name: match[name] or "" for name in _PARTS if name not in _VARYING or match[name] is None}
    return _Shape(pattern + _fixed(match.string[end:].rstrip()) + r"\s*$", fixed)


def _fixed(text: str) -> str:
    """Of the numbers that change but are not wanted only the place is fixed."""
    return r"[-0-9.,/]*[0-9]".join(re.escape(one) for one in re.split(r"(?<=: )[-0-9.,/]*[0-9]", text))


def _intervals(parts: Mapping[str, pa.StringArray], lines: Places) -> tuple[_Intervals, int]:
    """By the column, and how many lines have no rate or not as many latencies as they name."""
    columns = {name: _numbers(parts[name]) for name in ("at", *_RATES)}
    latencies, good = _latencies(parts["label"], parts["values"], parts["unit"])
    good &= ~(np.isnan(columns["received"]) & np.isnan(columns["sent"]))
    every = _Intervals(lines, parts["id"].dictionary_encode(), columns | latencies)
    return (every, 0) if good.all() else (every.only(np.flatnonzero(good)), int((~good).sum()))


def _numbers(printed: pa.StringArray) -> Floats:
    plain = pc.replace_substring(printed, ",", ".")
    given = pc.if_else(pc.equal(plain, ""), None, plain)
    values: Floats = given.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values


def _latencies(
    labels: pa.StringArray, values: pa.StringArray, units: pa.StringArray
) -> tuple[dict[str, Floats], np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """In milliseconds by the column, and which lines have a value for each name."""
    size = len(labels)
    columns: dict[str, Floats] = defaultdict(lambda: np.full(size, np.nan))
    good = np.ones(size, dtype=bool)
    divisors = np.where(np.asarray(pc.equal(units, MILLISECONDS)), 1, MICROS_PER_MILLI)
    for label in filter(None, labels.unique().to_pylist()):
        names = label.split("/")
        places = np.flatnonzero(np.asarray(pc.equal(labels, label)))
        parts = pc.split_pattern(values.take(pa.array(places)), "/")
        fits = np.asarray(pc.equal(pc.list_value_length(parts), len(names)))
        good[places[~fits]] = False
        numbers = pc.list_flatten(parts.filter(pa.array(fits))).cast(pa.float64())
        table = numbers.to_numpy(zero_copy_only=False).reshape(-1, len(names))
        for at, name in enumerate(names):
            if name in LATENCIES:
                columns[LATENCIES[name]][places[fits]] = table[:, at] / divisors[places[fits]]
    return dict(columns), good


def _without_cut_end(intervals: _Intervals, last_line: int) -> _Intervals:
    """The last line is no interval where it says less than the one before it: the rest of it is lost."""
    if not len(intervals.lines) or intervals.lines[-1] != last_line:
        return intervals
    ids = intervals.ids.indices.to_numpy()
    before = np.flatnonzero(ids[:-1] == ids[-1])
    lost = len(before) and any(
        np.isnan(values[-1]) and not np.isnan(values[before[-1]]) for values in intervals.columns.values()
    )
    return intervals.only(np.arange(len(ids) - 1)) if lost else intervals


def _notes(lines: Lines, left: Places) -> _Notes:
    notes = _Notes()
    begun: list[str] = []
    for line in left.tolist():
        text = lines.at(line).strip()
        if text.endswith("\\"):
            # a command may be written over several lines
            begun.append(text.removesuffix("\\"))
            continue
        whole = " ".join([*begun, text])
        if text and not _note(notes, line, whole):
            notes.unread += 1 + len(begun)
        begun = []
    notes.unread += len(begun)
    return notes


def _note(notes: _Notes, line: int, text: str) -> bool:
    if match := _RATE.fullmatch(text):
        value = float(match["printed"].replace(",", "."))
        metric = "average_sent_msgs_per_s" if match["way"] == "send" else "average_msgs_per_s"
        figure = SummaryFigure(line, match["header"], match["printed"], metric, value)
        notes.figures.append((match["id"] or "", figure))
    elif match := _LATENCY.fullmatch(text):
        notes.figures += [(match["id"] or "", figure) for figure in _latency_figures(line, match)]
    elif command := told_by(text):
        notes.commands.append((line, *command))
    else:
        return bool(_STARTING.fullmatch(text) or _COMMENT.fullmatch(text))
    return True


def _latency_figures(line: int, match: re.Match[str]) -> list[SummaryFigure]:
    names, values = match["label"].split("/"), match["values"].split("/")
    by = divisor(match["unit"])
    return [
        SummaryFigure(line, f"{match['header']} {name}", printed, LATENCIES.get(name), int(printed) / by)
        for name, printed in zip(names, values, strict=False)
    ]


def _runs(intervals: _Intervals, notes: _Notes) -> list[_Run]:
    """By their ids, in the order of their lines. What follows a summary under the same id is a run again."""
    names: list[str] = intervals.ids.dictionary.to_pylist()
    codes = intervals.ids.indices.to_numpy().astype(np.int64)
    ended: dict[str, list[int]] = defaultdict(list)
    for name, figure in notes.figures:
        if figure.metric == "average_sent_msgs_per_s":
            ended[name].append(figure.line)
    turns = np.zeros(len(codes), dtype=np.int64)
    for name, ends in ended.items():
        if name in names:
            mine = codes == names.index(name)
            turns[mine] = np.searchsorted(ends, intervals.lines[mine])
    runs: dict[tuple[str, int], _Run] = {}
    for places in places_by(codes + len(names) * turns):
        name = names[codes[places[0]]]
        runs[name, int(turns[places[0]])] = _Run(name, places)
    for name, figure in notes.figures:
        turn = max(bisect_right(ended[name], figure.line) - 1, 0)
        runs.setdefault((name, turn), _Run(name, np.empty(0, np.int64))).figures.append(figure)
    return sorted(runs.values(), key=lambda run: _first_line(run, intervals))


def _first_line(run: _Run, intervals: _Intervals) -> int:
    return int(intervals.lines[run.places[0]]) if len(run.places) else run.figures[0].line


def _claimed(runs: Sequence[_Run], intervals: _Intervals, notes: _Notes) -> list[tuple[Told, int]]:
    """What each run's command line says, and the line that the run starts on. A command line belongs to one
    run: that whose id it names, or the next. Of several that nothing tells apart none is believed."""
    free = list(notes.commands)
    claimed = []
    for run in runs:
        line = _first_line(run, intervals)
        before = [one for one in free if one[0] < line]
        named = [one for one in before if one[2] is not None and one[2] == run.name]
        mine = named[-1:] or [one for one in before if one[2] is None]
        if len(mine) == 1:
            free.remove(mine[0])
            claimed.append((mine[0][1], mine[0][0]))
        else:
            claimed.append((Told(TOLD), line))
    return claimed


def _recorded(run: _Run, intervals: _Intervals, told: Told, line: int) -> Recorded:
    mine = {name: values[run.places] for name, values in intervals.columns.items()}
    at_s, received, sent = (mine.pop(name) for name in ("at", *_RATES))
    if len(run.places):
        receives = not np.isnan(received).all()
    else:
        receives = any(one.metric == "average_msgs_per_s" and one.value for one in run.figures)
    return Recorded(
        line=line,
        samples=samples(intervals.lines[run.places], at_s, received, sent, mine),
        told=told.columns,
        loop=told.loop,
        requested_msgs_per_s=told.requested_msgs_per_s,
        summary=_meant(run.figures, receives),
        problem=told.problem,
    )


def _meant(figures: Sequence[SummaryFigure], receives: bool) -> list[SummaryFigure]:
    """A summary without consumers says that nothing was received; then the sending rate is the run's. Times
    until a confirm stand for the run only where nobody measures those until the receipt."""
    metrics = {"average_sent_msgs_per_s": "average_msgs_per_s", "average_msgs_per_s": None}
    consumed = any(one.header.startswith("consumer") for one in figures)
    meant = []
    for one in figures:
        metric = one.metric
        if not receives and metric in metrics:
            metric = metrics[metric]
        elif consumed and one.header.startswith("confirm"):
            metric = None
        meant.append(SummaryFigure(one.line, one.header, one.printed, metric, one.value))
    return meant


FORMAT = RunFormat(name="perftest", suffixes=(".log", ".out", ".txt"), recognises=_recognises, read=_read)
