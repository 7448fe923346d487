"""What a report's tables mean: declared in one data file per report, read here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from twin.sources.document import Document

_REPORTS = Path(__file__).parent / "reports"


class Declaration(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TableMeaning(Declaration):
    """Which configuration a table measured; its key columns say the rest row by row."""

    label: str
    configuration: dict[str, Any]
    exam_group: str | None = None


class Report(Declaration):
    """A catalogue entry and the meaning of every table in it."""

    source_id: str
    title: str
    edition: str
    published_at: date
    publisher: str
    document_sha256: str
    recognised_by: list[str]
    charts_missing: list[str]
    heading: str
    keys: dict[str, str]
    metrics: dict[str, str]
    words: dict[str, Any]
    configuration: dict[str, Any]
    tables: list[TableMeaning]

    def recognises(self, document: Document) -> bool:
        """Every mark stands in the document, wherever; file names say nothing."""
        return all(any(mark in line for line in document.lines) for mark in self.recognised_by)

    def heading_pattern(self) -> re.Pattern[str]:
        return re.compile(self.heading)

    def table(self, label: str) -> TableMeaning:
        return next(table for table in self.tables if table.label == label)


@cache
def reports() -> dict[str, Report]:
    """Every report the platform knows, by source id."""
    loaded = (
        Report.model_validate(yaml.safe_load(path.read_text())) for path in sorted(_REPORTS.glob("*.yaml"))
    )
    return {report.source_id: report for report in loaded}


def recognise(document: Document, known: Iterable[Report]) -> Report | None:
    return next((report for report in known if report.recognises(document)), None)
