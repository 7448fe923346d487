"""Plain CSV in the measurement schema: a row says what was measured, how much, and of which configuration.

The columns are those of `twin export measurements`; of these, the ones that say where a figure came from
(source_id, line, figure_id and the like) are passed over, so that no file can pose as a report.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from difflib import get_close_matches

from twin.core.checking import KNOWN
from twin.core.metrics import METRICS
from twin.core.spreadsheets import bared
from twin.core.tables import MEASUREMENTS
from twin.sources.document import Document
from twin.sources.documents import Refused
from twin.sources.harness.format import EXAM_GROUP, METRIC, PUBLISHED_AT, Cell, Format, HarnessRow
from twin.sources.harness.sidecar import Sidecar

_VALUE = "value"
_PLATFORM = ("product", "machine")
_DATES = (PUBLISHED_AT, "measured_at")
_COLUMNS = {*KNOWN, *MEASUREMENTS.columns, *_DATES}


def _rows(document: Document, sidecar: Sidecar) -> Iterator[HarnessRow]:
    # a cell may go on over lines
    reader = csv.reader((f"{line}\n" for line in document.lines), strict=True)
    header: list[str] = []
    try:
        for cells in reader:
            printed = [bared(cell).strip() for cell in cells]
            if not any(printed):
                continue
            if header:
                yield _row(reader.line_num, printed, header, sidecar)
            else:
                header = _header(document.name, reader.line_num, printed, sidecar)
    except csv.Error as error:
        raise Refused(f"{document.name} line {reader.line_num}: {error}") from error


def _header(name: str, line: int, header: list[str], sidecar: Sidecar) -> list[str]:
    place = f"{name} line {line}"
    twice = next((column for column, times in Counter(header).items() if times > 1), None)
    if twice is not None:
        raise Refused(f"{place}: column {twice!r} stands twice")
    for column in (METRIC, _VALUE, "family"):
        if column not in header and column not in sidecar.configuration:
            raise Refused(f"{place}: no column {column}")
    if sidecar.measured_at is None and not {*_DATES} & {*header}:
        raise Refused(f"{place}: no column {' or '.join(_DATES)}, and {sidecar.name} has no measured_at")
    for column in header:
        if column not in _COLUMNS and column not in sidecar.not_interpreted:
            near = get_close_matches(column, _COLUMNS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"not_interpreted in {sidecar.name} passes over it"
            raise Refused(f"{place}: column {column!r} is unknown; {hint}")
    return header


def _row(line: int, cells: list[str], header: list[str], sidecar: Sidecar) -> HarnessRow:
    printed = {name: cell for name, cell in zip(header, cells, strict=False) if cell}
    kept = [
        Cell(at, name, printed[name], name == _VALUE)
        for at, name in enumerate(header)
        if name in printed and (name == _VALUE or name in sidecar.not_interpreted)
    ]
    told = {name: cell for name, cell in printed.items() if name not in sidecar.not_interpreted}
    measured_on = _measured_on(told, sidecar)
    problem = _problem(cells, header, told, measured_on)
    if problem or measured_on is None:
        return HarnessRow(line, kept, problem=problem)
    keys = {name: told[name] for name in told if name in KNOWN or name in (METRIC, EXAM_GROUP)}
    said = {**sidecar.configuration, **keys}
    return HarnessRow(line, kept, {**_group(said), **said, PUBLISHED_AT: measured_on.isoformat()})


def _group(said: Mapping[str, str]) -> dict[str, str]:
    """Rows that do not say what they belong to belong to their product on their machine: a table may have
    many of both, and what is to be foretold of such a table is one of them."""
    if {*_PLATFORM} <= {*said}:
        return {EXAM_GROUP: " on ".join(said[name] for name in _PLATFORM)}
    return {}


def _problem(
    cells: list[str], header: list[str], told: Mapping[str, str], measured_on: date | None
) -> str | None:
    if len(cells) > len(header):
        return f"{len(cells)} cells under {len(header)} columns"
    if _VALUE not in told:
        return f"column {_VALUE} is empty"
    metric = METRICS.get(told.get(METRIC, ""))
    if metric is None:
        near = get_close_matches(told.get(METRIC, ""), METRICS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"column {METRIC}: {told.get(METRIC, '')!r} is not known{hint}"
    if told.get("unit", metric.unit or "") != (metric.unit or ""):
        return f"column unit: {told['unit']!r}; {metric.name} is in {metric.unit or 'no unit'}"
    # an exported claim is what somebody wrote about figures, not what somebody measured
    if told.get("fact_kind", "measurement") != "measurement":
        return f"column fact_kind: {told['fact_kind']!r} is no measurement"
    return "no date like 2022-06-03" if measured_on is None else None


def _measured_on(told: Mapping[str, str], sidecar: Sidecar) -> date | None:
    """The first date column that is filled; without one, the sidecar's. A time of day may follow."""
    said = next((told[name] for name in _DATES if name in told), None)
    if said is None:
        return sidecar.measured_at
    try:
        return date.fromisoformat(said[:10])
    except ValueError:
        return None


def _recognises(first_lines: Sequence[str]) -> bool:
    header = next((line for line in first_lines if line.strip()), "")
    return {METRIC, _VALUE} <= {name.strip().strip('"') for name in header.split(",")}


FORMAT = Format(name="measurements", suffixes=(".csv",), recognises=_recognises, rows=_rows)
