"""Documents to printed figures, and printed figures to measurements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from twin.core.configuration import Configuration, content_id
from twin.core.measurement import Measurement, Origin, PrintedFigure
from twin.core.metrics import METRICS
from twin.sources.document import Document
from twin.sources.pipe_tables import PrintedRow, PrintedTable, pipe_tables
from twin.sources.report import Report


class MissingColumn(Exception):
    """A declared table lacks a declared column."""


def read_figures(document: Document, report: Report) -> list[PrintedFigure]:
    """Every value of the declared tables, in document order."""
    declared = {table.label for table in report.tables}
    figures: list[PrintedFigure] = []
    for table in pipe_tables(document.lines, report.heading_pattern()):
        if table.label in declared:
            _check_columns(table, report)
            for row in table.rows:
                figures.extend(_figures_of_row(row, table, report))
    return figures


def interpret(figure: PrintedFigure, report: Report) -> Measurement:
    """A figure's metric, value and configuration by its report's declarations."""
    origin = figure.origin
    table = report.table(origin.table_label)
    metric = METRICS[report.metrics[origin.column_header]]
    keys: dict[str, str] = json.loads(figure.row_keys)
    row: dict[str, Any] = {report.keys[header]: _key_value(cell, report) for header, cell in keys.items()}
    configuration = Configuration.from_flat(report.configuration | table.configuration | row)
    return Measurement(
        figure_id=figure.figure_id,
        metric=metric.name,
        value=float(origin.printed),
        unit=metric.unit or "",
        published_at=report.published_at,
        exam_group=table.exam_group or table.label,
        configuration_id=configuration.configuration_id,
        platform_id=content_id(configuration.platform, configuration.software),
        workload_id=content_id(configuration.workload),
        origin=origin,
        configuration=configuration,
    )


def _check_columns(table: PrintedTable, report: Report) -> None:
    missing = [header for header in (*report.keys, *report.metrics) if header not in table.header]
    if missing:
        raise MissingColumn(f"table {table.label} (line {table.line}) has no column {', '.join(missing)}")


def _figures_of_row(row: PrintedRow, table: PrintedTable, report: Report) -> Iterator[PrintedFigure]:
    cells = dict(zip(table.header, row.cells, strict=False))
    keys = {header: cells.get(header, "") for header in report.keys}
    values = [header for header in table.header if header in report.metrics and cells.get(header)]
    for ordinal, header in enumerate(values):
        yield PrintedFigure(
            figure_id=f"{report.source_id}:{row.line}:{ordinal}",
            origin=Origin(
                source_id=report.source_id,
                line=row.line,
                table_label=table.label,
                column_header=header,
                column_index=table.header.index(header),
                printed=cells[header],
                source_kind="table",
            ),
            row_keys=json.dumps(keys),
        )


def _key_value(cell: str, report: Report) -> Any:
    return report.words.get(cell.lower(), cell)
