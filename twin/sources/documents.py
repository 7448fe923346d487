"""Files to documents with their figures, ready for bronze."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from twin.core.measurement import CataloguedDocument, PrintedFigure
from twin.core.outside import BadInput
from twin.sources.declarations import Report, reports
from twin.sources.document import Document
from twin.sources.interpreting import BadReference, interpret
from twin.sources.layouts import MissingTable
from twin.sources.reading import MissingStatement, read_figures, read_unknown, recognise
from twin.sources.shipped import shipped_figures


class Refused(Exception):
    """A file whose figures cannot be taken, and why."""


@dataclass(frozen=True)
class ReadDocument:
    card: CataloguedDocument
    figures: list[PrintedFigure]
    # what its owner should know about figures whose meaning was not understood
    remark: str | None = None


_UNDECLARED = (
    "no declaration fits this document: its cells are in bronze, but nothing says what they mean; "
    "see CONTRIBUTING, 'Add a report'"
)


def read_document(path: Path, source_id: str | None = None) -> ReadDocument:
    """One file, whole or not at all."""
    try:
        document = Document.load(path)
        report = _chosen(document, source_id)
        if report is None:
            return _unknown(document, source_id or f"unknown-{document.sha256[:8]}")
        figures = read_figures(document, report)
        interpret(figures, report)
    except (BadInput, MissingTable, MissingStatement, BadReference) as error:
        raise Refused(str(error)) from error
    return ReadDocument(_card(report, document.name, document.sha256, len(figures)), figures)


def shipped_documents() -> list[ReadDocument]:
    """The reports that the platform ships, as their documents were read."""
    return [_shipped(report) for report in reports().values()]


def _chosen(document: Document, source_id: str | None) -> Report | None:
    recognised = recognise(document, reports())
    if source_id is not None and recognised is not None and recognised.source_id != source_id:
        raise Refused(f"{document.name} is {recognised.source_id}, not {source_id}")
    return recognised


def _unknown(document: Document, source_id: str) -> ReadDocument:
    if source_id in reports():
        raise Refused(
            f"{document.name} does not look like {source_id}: {_missing_marks(document, source_id)}"
        )
    figures = read_unknown(document, source_id)
    if not figures:
        raise Refused(f"{document.name} is no report that is known here, and no table was found in it")
    card = CataloguedDocument(
        source_id=source_id,
        document_name=document.name,
        document_sha256=document.sha256,
        declared=False,
        figures=len(figures),
    )
    return ReadDocument(card, figures, _UNDECLARED)


def _missing_marks(document: Document, source_id: str) -> str:
    text = "\n".join(document.lines)
    missing = [mark for mark in reports()[source_id].recognised_by if mark not in text]
    return "it lacks " + "; ".join(repr(mark) for mark in missing)


def _shipped(report: Report) -> ReadDocument:
    figures = shipped_figures(report.source_id)
    card = _card(report, f"{report.source_id}.txt", report.catalogue.document_sha256, len(figures))
    return ReadDocument(card, figures)


def _card(report: Report, name: str, sha256: str, figures: int) -> CataloguedDocument:
    catalogue = report.catalogue
    return CataloguedDocument(
        source_id=report.source_id,
        document_name=name,
        document_sha256=sha256,
        declared=True,
        figures=figures,
        title=catalogue.title,
        edition=catalogue.edition,
        publisher=catalogue.publisher,
        document_published_at=catalogue.published_at,
        machines="; ".join(catalogue.machines),
        products="; ".join(catalogue.products),
        charts_missing="; ".join(catalogue.charts_missing),
    )
