"""Lines of a document as cells of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from twin.sources.declarations import TableDeclaration

_RULE = re.compile(r"^[|\s:+-]+$")
_FOOTNOTE = re.compile(r"<sup>.*?</sup>")
_MARKUP = re.compile(r"</?\w+>|\*\*|\\(?=_)")


class MissingTable(Exception):
    """A declared table, or a column of it, is not in the document."""


@dataclass(frozen=True)
class PrintedRow:
    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class PrintedTable:
    line: int
    header: tuple[str, ...]
    rows: tuple[PrintedRow, ...]
    labels: dict[str, str] = field(default_factory=dict)


def find_table(lines: Sequence[str], table: TableDeclaration, start: int) -> tuple[PrintedTable, int]:
    """The declared table at or below line index `start`, and the index of the line after it."""
    anchor = start
    if table.after is not None:
        pattern = re.compile(table.after)
        found = next((i for i in range(start, len(lines)) if pattern.search(lines[i])), None)
        if found is None:
            raise MissingTable(f"table {table.label}: no line like {table.after!r} after line {start}")
        anchor = found + 1
    if table.row is not None:
        return _pattern_table(lines, table, anchor)
    wanted = [clean(cell) for cell in table.header or [column.header for column in table.columns]]
    for index in range(anchor, len(lines)):
        cells = split(lines[index])
        if cells and [clean(cell) for cell in cells[: len(wanted)]] == wanted:
            rows, end = _rows_below(lines, table, index + 1)
            if not rows:
                raise MissingTable(f"table {table.label} (line {index + 1}) has no rows")
            return PrintedTable(index + 1, cells, tuple(rows), _labels(lines, table, anchor, index)), end
    raise MissingTable(_why_not_found(lines, table, anchor, wanted))


def split(line: str) -> tuple[str, ...] | None:
    """The cells between pipes or tabs as printed, or None for a line that is no row."""
    if line.lstrip().startswith("|"):
        return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
    return tuple(cell.strip() for cell in line.split("\t")) if "\t" in line else None


def clean(cell: str) -> str:
    """A cell without footnote marks and markup."""
    return " ".join(_MARKUP.sub("", _FOOTNOTE.sub("", cell)).split())


def any_tables(lines: Sequence[str]) -> Iterator[PrintedTable]:
    """Whatever looks like a table, for documents that nobody has declared."""
    block: list[PrintedRow] = []
    for number, line in enumerate((*lines, ""), start=1):
        cells = split(line)
        if cells:
            if not _RULE.match(line):
                block.append(PrintedRow(number, cells))
            continue
        if len(block) > 1:
            yield PrintedTable(block[0].line, block[0].cells, tuple(block[1:]))
        block = []


def _labels(lines: Sequence[str], table: TableDeclaration, anchor: int, header: int) -> dict[str, str]:
    """Printed labels between the anchor line and the header, each with the line it stands on."""
    labels: dict[str, str] = {}
    for name, pattern in table.labels.items():
        for index in range(max(anchor - 1, 0), header):
            if match := re.search(pattern, lines[index]):
                labels |= {name: match.group(1), f"{name}_line": str(index + 1)}
                break
        else:
            raise MissingTable(f"table {table.label}: no label like {pattern!r} above line {header + 1}")
    return labels


def _rows_below(lines: Sequence[str], table: TableDeclaration, start: int) -> tuple[list[PrintedRow], int]:
    skip = re.compile(table.skip) if table.skip else None
    rows: list[PrintedRow] = []
    index = start
    while index < len(lines):
        line = lines[index]
        cells = split(line)
        if cells is None and not (skip and skip.search(line)):
            break
        if cells and not _RULE.match(line) and any(cells):
            rows.append(PrintedRow(index + 1, cells))
        index += 1
    return rows, index


def _pattern_table(lines: Sequence[str], table: TableDeclaration, start: int) -> tuple[PrintedTable, int]:
    pattern = re.compile(table.row or "")
    rows: list[PrintedRow] = []
    for index in range(start, len(lines)):
        match = pattern.search(lines[index])
        if match:
            rows.append(PrintedRow(index + 1, tuple(cell or "" for cell in match.groups())))
        elif rows:
            return PrintedTable(rows[0].line, (), tuple(rows)), index
    raise MissingTable(f"table {table.label}: no line like {table.row!r} after line {start}")


def _why_not_found(lines: Sequence[str], table: TableDeclaration, anchor: int, wanted: list[str]) -> str:
    """Name the column where the table is there and a column of it is not."""
    for index in range(anchor, len(lines)):
        cells = split(lines[index])
        if cells:
            printed = [clean(cell) for cell in cells]
            missing = [header for header in wanted if header and header not in printed]
            if missing and len(missing) < len([header for header in wanted if header]):
                return f"table {table.label} (line {index + 1}) has no column {', '.join(missing)}"
            break
    return f"table {table.label}: no header {' | '.join(wanted)} after line {anchor}"
