"""Harness files to printed figures, ready for bronze like those of a report."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from twin.core.checking import problems_of
from twin.core.measurement import CataloguedDocument, Origin, PrintedFigure
from twin.core.outside import BadInput
from twin.sources.document import Document
from twin.sources.documents import ReadDocument, Refused
from twin.sources.harness.format import PUBLISHED_AT, Format, HarnessRow
from twin.sources.harness.registry import FORMATS, suffixes_of, table_format
from twin.sources.harness.sidecar import Sidecar, sidecar_of

# Every harness source and no report is called so: a file cannot claim to be a report
PREFIX = "harness-"
# by these a file is recognised
FIRST_LINES = 50
# problems told one by one
_MOST_TOLD = 5


def read_harness(path: Path, source_id: str | None = None) -> ReadDocument:
    """One file, whole or not at all; rows that are not understood are kept as printed."""
    try:
        document = Document.load(path, suffixes_of(FORMATS))
    except BadInput as error:
        raise Refused(str(error)) from error
    form = table_format(path.suffix, document.lines[:FIRST_LINES])
    if form is None:
        names = ", ".join(one.name for one in FORMATS)
        raise Refused(f"{document.name} line 1: its columns are those of no harness format ({names})")
    sidecar = _sidecar(path, form)
    named = _source_id(path, document, sidecar, source_id)
    rows = [_checked(form, row) for row in form.rows(document, sidecar)]
    _refuse_unusable(document, sidecar, rows)
    figures = [
        figure for row in rows for figure in _figures(row, named, path.stem, form, sidecar.not_interpreted)
    ]
    card = CataloguedDocument(
        source_id=named,
        document_name=document.name,
        document_sha256=document.sha256,
        declared=True,
        figures=len(figures),
        title=f"{form.name}: {path.stem}",
        document_published_at=min(_dates(rows)),
        machines=_told(form, rows, "machine"),
        products=_told(form, rows, "product"),
    )
    return ReadDocument(card, figures, _remark(rows))


def _sidecar(path: Path, form: Format) -> Sidecar:
    sidecar = sidecar_of(path)
    if form.needs_sidecar and not sidecar.exists:
        raise Refused(
            f"{path.name} does not say what was measured: {sidecar.name} beside it has to name os, machine, "
            "cpus, product and version"
        )
    rows_say = {*form.keys.values(), *(["family"] if form.family else [])} & {*sidecar.configuration}
    if rows_say:
        raise Refused(f"{sidecar.name}: {min(rows_say)}: the rows of {path.name} say this")
    return sidecar


def _source_id(path: Path, document: Document, sidecar: Sidecar, given: str | None) -> str:
    # files of runs belong together in a source of their folder's name; a table is one of its own
    own = sidecar.source if "source" in sidecar.own else None
    told, asked = named_source(own, sidecar.name), named_source(given, "the given source id")
    if told and asked and told != asked:
        raise Refused(f"{document.name} is {told} by {sidecar.name}, not {asked}")
    parts = (slug(path.stem), document.sha256[:8])
    return told or asked or PREFIX + "-".join(part for part in parts if part)


def named_source(source: str | None, where: str) -> str | None:
    if source is None:
        return None
    name = slug(source).removeprefix(PREFIX)
    if not name:
        raise Refused(f"{where}: {source!r} has no letter or digit to make a source id of")
    return PREFIX + name


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _checked(form: Format, row: HarnessRow) -> HarnessRow:
    if row.problem is not None:
        return row
    printed = {column: header for header, column in form.keys.items()}
    problems = [
        f"column {printed.get(name, name)}: {reason}"
        for name, reason in problems_of(form.configuration(row.keys))
    ]
    return replace(row, problem="; ".join(problems) or None)


def _refuse_unusable(document: Document, sidecar: Sidecar, rows: Sequence[HarnessRow]) -> None:
    if not rows:
        raise Refused(f"{document.name} line {len(document.lines)}: it ends without a row of figures")
    if all(row.problem for row in rows):
        raise Refused(f"{document.name}: no row can be used; {_problems(rows)}")
    headers = {cell.header for row in rows for cell in row.cells}
    unknown = sorted(sidecar.not_interpreted - headers)
    if unknown:
        raise Refused(f"{sidecar.name}: not_interpreted: no column {unknown[0]!r} in {document.name}")


def _figures(
    row: HarnessRow, source_id: str, label: str, form: Format, not_interpreted: frozenset[str]
) -> list[PrintedFigure]:
    keys = json.dumps(dict(row.keys), ensure_ascii=False)
    return [
        PrintedFigure(
            figure_id=f"{source_id}:{row.line}:{ordinal}",
            origin=Origin(
                source_id=source_id,
                line=row.line,
                table_label=label,
                column_header=cell.header,
                column_index=cell.column,
                printed=cell.printed,
                source_kind="table",
            ),
            row_keys=keys,
            declared_as=f"{form.name}/{cell.header}"
            if cell.meant and not row.problem and cell.header not in not_interpreted
            else None,
        )
        for ordinal, cell in enumerate(row.cells)
    ]


def _dates(rows: Sequence[HarnessRow]) -> list[date]:
    return [date.fromisoformat(row.keys[PUBLISHED_AT]) for row in rows if not row.problem]


def _told(form: Format, rows: Sequence[HarnessRow], column: str) -> str:
    """What the file is about, for its card."""
    said = [form.configuration(row.keys)[column] for row in rows if not row.problem]
    return "; ".join(dict.fromkeys(said))


def _remark(rows: Sequence[HarnessRow]) -> str | None:
    bad = [row for row in rows if row.problem]
    if not bad:
        return None
    return f"{len(bad)} of {len(rows)} rows were not understood and stay in bronze; {_problems(bad)}"


def _problems(rows: Sequence[HarnessRow]) -> str:
    told = [f"line {row.line}: {row.problem}" for row in rows[:_MOST_TOLD]]
    more = len(rows) - len(told)
    return "; ".join([*told, f"and {more} more"] if more else told)
