"""Documents to printed figures: every declared value with its line, its characters and its keys."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from twin.core.measurement import Origin, PrintedFigure
from twin.sources.declarations import Column, Fact, Report, RowDeclaration, TableDeclaration
from twin.sources.document import Document
from twin.sources.layouts import MissingTable, PrintedRow, PrintedTable, any_tables, clean, find_table


class MissingStatement(Exception):
    """A declared sentence is not in the document."""


@dataclass(frozen=True)
class _Found:
    """A figure before it has a number on its line."""

    position: int
    origin: Origin
    row_keys: str
    declared_as: str | None


def recognise(document: Document, known: dict[str, Report]) -> Report | None:
    """By what stands in it: a file name says nothing."""
    text = "\n".join(document.lines)
    return next(
        (report for report in known.values() if all(mark in text for mark in report.recognised_by)), None
    )


def read_figures(document: Document, report: Report) -> list[PrintedFigure]:
    """Every declared figure, in document order."""
    return _numbered([*_in_tables(document, report), *_in_prose(document, report)])


def read_unknown(document: Document, source_id: str) -> list[PrintedFigure]:
    """Every cell below a header, for a document that no declaration fits."""
    found = []
    for table in any_tables(document.lines):
        for row in table.rows:
            keys = json.dumps({table.header[0]: row.cells[0]})
            for index, cell in enumerate(row.cells):
                if cell:
                    header = table.header[index] if index < len(table.header) else ""
                    origin = _origin(
                        source_id, row.line, f"line {table.line}", header, index, cell, "table", None
                    )
                    found.append(_Found(index, origin, keys, None))
    return _numbered(found)


def _numbered(found: list[_Found]) -> list[PrintedFigure]:
    by_line: dict[int, list[_Found]] = defaultdict(list)
    for one in found:
        by_line[one.origin.line].append(one)
    return [
        PrintedFigure(
            figure_id=f"{one.origin.source_id}:{line}:{ordinal}",
            origin=one.origin,
            row_keys=one.row_keys,
            declared_as=one.declared_as,
        )
        for line in sorted(by_line)
        for ordinal, one in enumerate(sorted(by_line[line], key=lambda one: one.position))
    ]


def _in_tables(document: Document, report: Report) -> Iterator[_Found]:
    below = 0
    for number, declared in enumerate(report.tables):
        table, below = find_table(document.lines, declared, below)
        for row, row_number in _declared_rows(table, declared):
            yield from _in_row(row, row_number, declared, f"tables/{number}", report, table.labels)


def _declared_rows(
    table: PrintedTable, declared: TableDeclaration
) -> Iterator[tuple[PrintedRow, int | None]]:
    """Rows with the number of their declaration, where rows are declared; none is passed over in silence."""
    if not declared.rows:
        yield from ((row, None) for row in table.rows)
        return
    next_row = 0
    for row in table.rows:
        label = clean(" ".join(row.cells))
        if any(one.skip and re.match(one.label, label) for one in declared.rows):
            continue
        for number in range(next_row, len(declared.rows)):
            if not declared.rows[number].skip and re.match(declared.rows[number].label, label):
                next_row = number + 1
                yield row, number
                break
        else:
            raise MissingTable(f"table {declared.label} (line {row.line}): no row {label!r} is declared here")


def _in_row(
    row: PrintedRow,
    row_number: int | None,
    table: TableDeclaration,
    path: str,
    report: Report,
    labels: dict[str, str],
) -> Iterator[_Found]:
    meaning = table.rows[row_number] if row_number is not None else None
    for index, column in enumerate(table.columns):
        cell = row.cells[index] if index < len(row.cells) else ""
        facts = _facts(column, meaning)
        if column.key is not None or not facts or not cell:
            continue
        keys = _printed_keys(row, column, table, labels)
        box = column.box or table.box
        row_path = "" if row_number is None else f"/rows/{row_number}"
        for ordinal, printed, offset in _in_cell(cell, facts):
            origin = _origin(
                report.source_id, row.line, table.label, column.header, index, printed, "table", box
            )
            place = f"{path}{row_path}/columns/{index}/facts/{ordinal}"
            yield _Found(index * 10_000 + offset, origin, keys, place)


def _facts(column: Column, meaning: RowDeclaration | None) -> list[Fact]:
    return meaning.facts if meaning and meaning.facts else column.facts


def _in_cell(cell: str, facts: list[Fact]) -> Iterator[tuple[int, str, int]]:
    """Each fact's number, characters and place; a cell in which none is found is a figure as it stands."""
    found = False
    for ordinal, fact in enumerate(facts):
        if match := re.search(fact.find, cell):
            found = True
            group = 1 if match.re.groups else 0
            yield ordinal, match.group(group), match.start(group)
    if not found:
        yield 0, cell, 0


def _printed_keys(row: PrintedRow, column: Column, table: TableDeclaration, labels: dict[str, str]) -> str:
    """The row's key cells by header; of tables side by side, the keys of the column's own."""
    keys = dict(labels)
    for index, candidate in enumerate(table.columns):
        if candidate.key is not None and candidate.box in (None, column.box) and index < len(row.cells):
            keys[candidate.header] = clean(row.cells[index])
    return json.dumps(keys, ensure_ascii=False)


def _in_prose(document: Document, report: Report) -> Iterator[_Found]:
    # a line feed and a space are one character each: places in the text and in the lines agree
    text = " ".join(document.lines)
    starts = [0, *accumulate(len(line) + 1 for line in document.lines)]
    below = 0
    for number, statement in enumerate(report.statements):
        if statement.after is not None:
            anchor = re.search(statement.after, text)
            if anchor is None:
                raise MissingStatement(f"{statement.section}: nothing like {statement.after!r}")
            below = anchor.start()
        match = re.compile(statement.find).search(text, below)
        if match is None:
            line = bisect_right(starts, below)
            raise MissingStatement(f"{statement.section}: nothing like {statement.find!r} after line {line}")
        below = match.end()
        for ordinal in range(len(statement.facts)):
            start = match.start(ordinal + 1)
            line = bisect_right(starts, start)
            printed = match.group(ordinal + 1)
            origin = _origin(report.source_id, line, statement.section, "", ordinal, printed, "prose", None)
            yield _Found(start - starts[line - 1], origin, "{}", f"statements/{number}/facts/{ordinal}")


def _origin(
    source_id: str, line: int, label: str, header: str, index: int, printed: str, kind: str, box: str | None
) -> Origin:
    return Origin.model_validate(
        {
            "source_id": source_id,
            "line": line,
            "table_label": label,
            "column_header": header,
            "column_index": index,
            "printed": printed,
            "source_kind": kind,
            "box": box,
        }
    )
