"""Tables drawn with pipes, each under the heading it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_RULE = re.compile(r"^[|\s:+-]+$")


@dataclass(frozen=True)
class PrintedRow:
    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class PrintedTable:
    label: str
    line: int
    header: tuple[str, ...]
    rows: tuple[PrintedRow, ...]


def pipe_tables(lines: Sequence[str], heading: re.Pattern[str]) -> Iterator[PrintedTable]:
    """Tables in order; `heading` matches the line that names a table, its first group is the label."""
    label = ""
    block: list[PrintedRow] = []
    for number, line in enumerate((*lines, ""), start=1):
        if line.lstrip().startswith("|"):
            if not _RULE.match(line):
                block.append(PrintedRow(number, _cells(line)))
            continue
        if block:
            header, *rows = block
            yield PrintedTable(label, header.line, header.cells, tuple(rows))
            block = []
        if match := heading.match(line):
            label = match.group(1)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
