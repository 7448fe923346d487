"""Logs of MQ-CPH and PerfHarness: a command line, a line per interval, a summary in the end.

Both print `name=value` pairs, with the numbers of their machine's locale. A log may hold several runs one
after the other, each under its own command line; one that has none is told by the sidecar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from twin.sources.document import Document
from twin.sources.documents import Refused
from twin.sources.harness.command_line import is_command_line, told_by
from twin.sources.harness.format import PUBLISHED_AT, Cell, Format, HarnessRow
from twin.sources.harness.sidecar import Sidecar

_ITERATIONS = "totalIterations"
_PAIR = re.compile(r"([A-Za-z][A-Za-z ()]*)=(.*?)(?=,[A-Za-z][A-Za-z ()]*=|$)")
# 16648.00, 16,648.00, 16.648,00, 16 648,00: two digits follow the decimal mark, three a grouping one
_NUMBER = re.compile(r"(\d+|\d{1,3}(?:[.,]\d{3})+)(?:[.,](\d{1,2}))?")
_SPACES = re.compile(r"[\s'\u00a0\u202f]")


@dataclass
class _Run:
    """What stands under one command line."""

    line: int
    told: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None
    intervals: list[int] = field(default_factory=list)
    summaries: list[tuple[int, dict[str, str]]] = field(default_factory=list)


def plain_number(printed: str) -> str:
    """A printed number with a point before its decimals and nothing else; what is none stays as it is."""
    match = _NUMBER.fullmatch(_SPACES.sub("", printed))
    if match is None:
        return printed
    whole = re.sub(r"\D", "", match[1])
    return f"{whole}.{match[2]}" if match[2] else whole


def iteration_log(
    name: str, rates: Mapping[str, str], interval: re.Pattern[str], summary: re.Pattern[str]
) -> Format:
    """A format by what its lines look like. `rates`: what the summary may say, by its name."""

    def is_interval(text: str) -> bool:
        return interval.fullmatch(text.strip()) is not None

    return Format(
        name=name,
        suffixes=(".log", ".out", ".txt"),
        recognises=lambda lines: any(is_interval(one) or summary.fullmatch(one.strip()) for one in lines),
        rows=lambda document, sidecar: _rows_of(document, sidecar, is_interval, rates),
        metrics=rates,
        needs_sidecar=True,
        plain_number=plain_number,
    )


def _rows_of(
    document: Document, sidecar: Sidecar, is_interval: Callable[[str], bool], rates: Mapping[str, str]
) -> Iterator[HarnessRow]:
    """A row per run."""
    if sidecar.measured_at is None:
        when = f"and {sidecar.name} has no measured_at"
        raise Refused(f"{document.name} does not say when it was measured, {when}")
    for run in _runs(document, is_interval):
        if run.intervals or run.summaries:
            yield from _rows(run, sidecar, rates)


def _runs(document: Document, is_interval: Callable[[str], bool]) -> list[_Run]:
    runs = [_Run(1)]
    for line, text in enumerate(document.lines, start=1):
        if is_command_line(text):
            told, problem = told_by(text)
            runs.append(_Run(line, told, problem))
        elif _ITERATIONS in text:
            runs[-1].summaries.append((line, _pairs(text)))
        elif is_interval(text):
            runs[-1].intervals.append(line)
    return runs


def _pairs(text: str) -> dict[str, str]:
    return {name.strip(): value.strip() for name, value in _PAIR.findall(text.strip())}


def _rows(run: _Run, sidecar: Sidecar, rates: Mapping[str, str]) -> Iterator[HarnessRow]:
    if not run.summaries:
        cut_short = "the log ends without a summary: the run was cut short"
        yield HarnessRow(run.intervals[-1], [], problem=cut_short)
        return
    for line, summary in run.summaries:
        cells = [Cell(at, name, value, name in rates) for at, (name, value) in enumerate(summary.items())]
        problem = run.problem or _problem(run, summary, sidecar, rates)
        keys = {**sidecar.configuration, **run.told, PUBLISHED_AT: str(sidecar.measured_at)}
        yield HarnessRow(line, cells, keys, problem)


def _problem(run: _Run, summary: Mapping[str, str], sidecar: Sidecar, rates: Mapping[str, str]) -> str | None:
    if len(run.summaries) > 1:
        return f"{len(run.summaries)} summaries under one command line: the output of several processes"
    if not {*summary} & {*rates}:
        return f"its summary has none of {', '.join(rates)}"
    unread = [name for name, value in summary.items() if not _NUMBER.fullmatch(plain_number(value))]
    if unread:
        return f"{unread[0]}={summary[unread[0]]} is no number"
    if float(plain_number(summary[_ITERATIONS])) == 0:
        return "nothing was done: totalIterations is 0"
    for name, value in sidecar.configuration.items():
        if run.told.get(name, value) != value:
            return f"{name}: {run.told[name]} on line {run.line}, {value} in {sidecar.name}"
    return None
