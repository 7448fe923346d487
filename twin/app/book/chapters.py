"""A page for each source, with a section for each of its tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twin.app.book.charting import Chart, charts_of
from twin.app.book.figures import Figure
from twin.app.book.held_out import SHOWN
from twin.app.book.wording import COLUMNS, anchors, exactly, shown, signed, told, told_all

# a section of more figures than this shows the first ones: no report has a table of that size
_MOST = 500
IN_SENTENCES = "in-sentences"


@dataclass(frozen=True)
class Said:
    """A predictor's cell: a value with its interval and error, or an excuse, or nothing."""

    value: str = ""
    interval: str = ""
    error: str = ""
    excuse: str = ""


@dataclass(frozen=True)
class Line:
    """A figure as a row of the table beside the charts."""

    figure: Figure
    # what its row has that others of the table have not
    row: str
    measured: str
    said: Mapping[str, Said]


@dataclass(frozen=True)
class Section:
    anchor: str
    title: str
    same: str
    charts: Sequence[Chart]
    lines: Sequence[Line]
    left_out: int
    # nothing was measured in it
    is_setup: bool
    marked: Sequence[Figure]

    @property
    def figures(self) -> int:
        return len(self.lines) + self.left_out


@dataclass(frozen=True)
class Chapter:
    source_id: str
    page: str
    document: Mapping[str, Any]
    same: str
    sections: Sequence[Section]
    in_sentences: Section | None

    @property
    def title(self) -> str:
        return self.document.get("title") or self.source_id


def chapters_of(figures: Iterable[Figure], documents: Iterable[Mapping[str, Any]]) -> list[Chapter]:
    """In the order of their ids; what somebody measured by a harness comes after the reports."""
    cards = {one["source_id"]: one for one in documents}
    of_source: dict[str, list[Figure]] = {source_id: [] for source_id in cards}
    for one in figures:
        of_source.setdefault(one.source_id, []).append(one)
    pages = anchors(of_source)
    return [
        _chapter(source_id, f"report-{pages[source_id]}.html", cards.get(source_id, {}), of_source[source_id])
        for source_id in sorted(of_source, key=lambda one: (one.startswith("harness-"), one))
    ]


def places_of(chapters: Iterable[Chapter]) -> dict[str, str]:
    """Where each figure stands in the book, by its id."""
    return {
        line.figure.figure_id: f"{chapter.page}#{section.anchor}"
        for chapter in chapters
        for section in (*chapter.sections, *([chapter.in_sentences] if chapter.in_sentences else []))
        for line in section.lines
    }


def _chapter(source_id: str, page: str, card: Mapping[str, Any], figures: Sequence[Figure]) -> Chapter:
    tables: dict[str, list[Figure]] = {}
    for one in figures:
        if one.in_table:
            tables.setdefault(one.place, []).append(one)
    same = _same(figures)
    named = anchors(tables)
    sections = [
        _section(f"table-{named[label]}", label, of_table, same) for label, of_table in tables.items()
    ]
    prose = [one for one in figures if not one.in_table]
    sentences = _section(IN_SENTENCES, "Figures in sentences", prose, same, drawn=False) if prose else None
    return Chapter(source_id, page, card, told_all(same, same), sections, sentences)


def _section(
    place: str, title: str, figures: Sequence[Figure], known: Mapping[str, Any], drawn: bool = True
) -> Section:
    first = figures[:_MOST]
    results = [one for one in first if one.is_result]
    same = {name: value for name, value in _same(figures).items() if name not in known}
    varying = [name for name in COLUMNS if name not in same and name not in known]
    charts = [
        chart
        for metric in _metrics(results)
        for chart in charts_of(place, metric, [one for one in results if one.metric == metric])
        if drawn
    ]
    return Section(
        anchor=place,
        title=title,
        same=told_all(same, same),
        charts=charts,
        lines=[Line(one, _row(one, varying), _measured(one), _said(one)) for one in first],
        left_out=len(figures) - len(first),
        is_setup=drawn and not results,
        marked=[one for one in figures if one.mark],
    )


def _metrics(figures: Iterable[Figure]) -> list[str]:
    """What was measured before what follows from it."""
    ordered = sorted(figures, key=lambda one: one.fact_kind != "measurement")
    return list(dict.fromkeys(one.metric for one in ordered))


def _same(figures: Iterable[Figure]) -> dict[str, Any]:
    """Settings that all of them share."""
    rows = [one.settings for one in figures if one.settings]
    if not rows:
        return {}
    return {
        name: rows[0][name]
        for name in COLUMNS
        if name in rows[0] and all(row.get(name) == rows[0][name] for row in rows)
    }


def _row(one: Figure, varying: Iterable[str]) -> str:
    """By the settings that differ, or as printed where a figure has none."""
    if one.settings:
        told_apart = [told(name, one.settings[name]) for name in varying if name in one.settings]
    else:
        told_apart = [f"{header} {cell}" for header, cell in json.loads(one.row_keys).items()]
    return ", ".join([*told_apart, *([one.box] if one.box else [])])


def _measured(one: Figure) -> str:
    """In its unit; a printed range has two ends and no middle."""
    if one.value is not None:
        return f"{exactly(one.value)} {one.unit}".strip()
    if one.value_low is not None and one.value_high is not None:
        return f"{exactly(one.value_low)} to {exactly(one.value_high)} {one.unit}".strip()
    return ""


def _said(one: Figure) -> dict[str, Said]:
    found = {}
    for predictor in SHOWN:
        answer = one.answers.get(predictor)
        if answer is None:
            found[predictor] = Said()
        elif answer.value is None or answer.lo90 is None or answer.hi90 is None:
            found[predictor] = Said(excuse=answer.excuse or "")
        else:
            error = one.error(predictor)
            off = "" if error is None else f"{signed(error)}{' points' if one.in_points else '%'}"
            interval = f"{shown(answer.lo90)} to {shown(answer.hi90)}"
            found[predictor] = Said(shown(answer.value), interval, off)
    return found
