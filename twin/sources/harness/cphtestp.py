"""`results.csv` of cphtestp and jmstestp: request and reply through a queue manager, a row per thread count.

Comments start with `#`; the last of them before the data names the columns. A run says when it was started,
in a comment or, in older files, in a plain first line. A rate counts round trips.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date

from twin.sources.document import Document
from twin.sources.documents import Refused
from twin.sources.harness.format import PUBLISHED_AT, Cell, Format, HarnessRow
from twin.sources.harness.sidecar import Sidecar

_KEYS = {"Persistence": "persistent", "Msg Size": "message_bytes", "Threads": "clients"}
_RATE = "Rate (RT/s)"
# IO, network and client processor columns mean the driver's machine or the whole network: nothing here
_METRICS = {_RATE: "throughput_msgs_per_s", "QM CPU": "cpu_busy_pct"}
_REQUIRED = (*_KEYS, _RATE)

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# what `date` prints: the day stands before the month or behind it, as the locale has it
_DAY = re.compile(rf"(?:\b(\d\d?) +)?\b({'|'.join(_MONTHS)})[a-z]*(?: +(\d\d?)\b)?")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def _rows(document: Document, sidecar: Sidecar) -> Iterator[HarnessRow]:
    header: list[str] = []
    started = sidecar.measured_at
    for line, text in enumerate(document.lines, start=1):
        comment = text.lstrip().startswith("#")
        said = text.lstrip().removeprefix("#").strip()
        if _names_columns(said):
            header = _header(document.name, line, said)
        elif (comment or "," not in said) and (found := _date(said)):
            started = found
        elif said and not comment:
            if not header:
                wanted = ", ".join(_REQUIRED)
                raise Refused(f"{document.name} line {line}: no line above names the columns {wanted}")
            if started is None:
                raise Refused(
                    f"{document.name} line {line}: no comment above says when this was measured, "
                    f"and {sidecar.name} has no measured_at"
                )
            yield _row(line, _cells(said), header, sidecar, started)


def _row(line: int, cells: list[str], header: list[str], sidecar: Sidecar, started: date) -> HarnessRow:
    if len(cells) == len(header) + 1 and not cells[-1]:
        cells = cells[:-1]  # the row ends with a comma
    printed = dict(zip(header, cells, strict=False))
    problem = _problem(cells, header, printed)
    if problem:
        headers = [*header, *[""] * len(cells)]
        kept = [Cell(at, headers[at], cell) for at, cell in enumerate(cells) if cell]
        return HarnessRow(line, kept, problem=problem)
    return HarnessRow(
        line,
        [
            Cell(at, name, cell, name in _METRICS)
            for at, (name, cell) in enumerate(zip(header, cells, strict=True))
            if cell and name not in _KEYS
        ],
        {
            **sidecar.configuration,
            **{name: printed[name] for name in _KEYS},
            PUBLISHED_AT: started.isoformat(),
        },
    )


def _problem(cells: list[str], header: list[str], printed: dict[str, str]) -> str | None:
    if len(cells) != len(header):
        return f"{len(cells)} cells under {len(header)} columns"
    empty = [name for name in _REQUIRED if not printed[name]]
    return f"column {empty[0]} is empty" if empty else None


def _header(name: str, line: int, said: str) -> list[str]:
    header = _cells(said.rstrip(","))
    missing = [column for column in _REQUIRED if column not in header]
    twice = [column for column in header if header.count(column) > 1]
    if missing:
        raise Refused(f"{name} line {line}: no column {missing[0]}")
    if twice:
        raise Refused(f"{name} line {line}: column {twice[0]} stands twice")
    return header


def _names_columns(said: str) -> bool:
    return len({*_REQUIRED} & {*_cells(said)}) > 1


def _cells(text: str) -> list[str]:
    return [cell.strip() for cell in text.split(",")]


def _date(said: str) -> date | None:
    day, year = _DAY.search(said), _YEAR.search(said)
    if not day or not year:
        return None
    before, month, behind = day.groups()
    try:
        return date(int(year[0]), _MONTHS.index(month) + 1, int(before or behind or 0))
    except ValueError:
        return None


def _recognises(first_lines: Sequence[str]) -> bool:
    printed = [line.strip() for line in first_lines if line.strip()]
    starts_with_comment = bool(printed) and printed[0].startswith("#")
    return starts_with_comment or any(_names_columns(line.removeprefix("#").strip()) for line in printed)


FORMAT = Format(
    name="cphtestp",
    suffixes=(".csv",),
    recognises=_recognises,
    rows=_rows,
    metrics=_METRICS,
    keys=_KEYS,
    family="request_reply",
    needs_sidecar=True,
)
