"""The figures of one metric of a table as charts: what `book.js` draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from twin.app.book.arranging import arranged, values_of
from twin.app.book.axes import Axis, sorting
from twin.app.book.figures import Answer, Figure
from twin.app.book.held_out import SHOWN, is_learned
from twin.app.book.wording import told_all, words
from twin.core.fields import Field
from twin.core.metrics import METRICS

# from this ratio of the greatest to the least value on, small ones would not be seen
_WIDE = 50.0


@dataclass(frozen=True)
class Chart:
    key: str
    title: str
    # what somebody who does not see it is told
    label: str
    # sentences below it
    notes: tuple[str, ...]
    spec: dict[str, Any]
    # one with names beside its axis needs the whole width
    wide: bool = False


def charts_of(place: str, metric: str, figures: Sequence[Figure]) -> list[Chart]:
    """`place` begins the key of each chart."""
    drawn = [one for one in figures if one.value is not None or one.value_low is not None]
    if not drawn:
        return []
    how = arranged(drawn)
    return [
        _chart(f"{place}-{metric}-{number}", metric, part, of_part, Axis.of(of_part, how))
        for number, (part, of_part) in enumerate(_parts(drawn, how.charts).items())
    ]


def _chart(key: str, metric: str, part: str, figures: Sequence[Figure], axis: Axis) -> Chart:
    field = METRICS[metric]
    title = f"{field.description}{f', {field.unit}' if field.unit else ''}{f' ({part})' if part else ''}"
    scores = _scores(figures)
    along = f", by {words(axis.column)}" if axis.column else ""
    spec = {
        "kind": "table",
        "unit": field.unit or "",
        "points": field.unit == "%",
        "source": figures[0].source_id,
        "axis": axis.spec(),
        "values": _values(field, figures),
        "series": [
            {
                "name": name,
                "figures": [_point(one, axis) for one in sorted(of_series, key=lambda one: one.line)],
                "answers": _answers(of_series, axis),
            }
            for name, of_series in _parts(figures, axis.apart if axis.column else ()).items()
        ],
    }
    label = f"{title}{along}: {len(figures)} printed figures. {' '.join(scores)} The table below has them."
    return Chart(key, title, label, (*scores, *_remarks(metric, figures)), spec, wide=axis.column is None)


def _parts(figures: Iterable[Figure], columns: tuple[str, ...]) -> dict[str, list[Figure]]:
    """By what these columns say, in the order of their values."""
    parts: dict[str, list[Figure]] = {}
    for one in sorted(
        figures, key=lambda one: [sorting(value) for value in values_of(one.settings, columns)]
    ):
        parts.setdefault(told_all(columns, one.settings), []).append(one)
    return parts


def _values(field: Field, figures: Sequence[Figure]) -> dict[str, Any]:
    """The other axis: from nothing upwards, unless the values are ratios apart."""
    if field.maximum is not None:
        return {"log": False, "top": field.maximum}
    answers = [said.value for one in figures for said in one.answers.values()]
    numbers = [one for one in (*(one.value for one in figures), *answers) if one is not None]
    return {"log": bool(numbers) and min(numbers) > 0 and max(numbers) / min(numbers) >= _WIDE, "top": None}


def _point(one: Figure, axis: Axis) -> dict[str, Any]:
    found: dict[str, Any] = {
        "at": axis.at(one),
        "figure_id": one.figure_id,
        "line": one.line,
        "printed": one.printed,
        "value": one.value,
        "configuration": one.configuration_id,
    }
    if one.value is None:
        found |= {"low": one.value_low, "high": one.value_high}
    if one.mark:
        found |= {"mark": one.mark, "rules": ", ".join(finding.rule for finding in one.findings)}
    return found


def _answers(figures: Iterable[Figure], axis: Axis) -> list[dict[str, Any]]:
    """One for each configuration, in the order of the axis; who gave an excuse is missing from it."""
    found = {
        one.configuration_id: {"at": axis.at(one), "configuration": one.configuration_id}
        | {name: _rounded(said) for name, said in one.answers.items() if said.value is not None}
        for one in figures
        if one.configuration_id is not None
    }
    return sorted(found.values(), key=lambda one: axis.order(one["at"]))


def _scores(figures: Sequence[Figure]) -> tuple[str, ...]:
    """How far off each predictor is, in the middle."""
    trusted = [one for one in figures if not one.quarantined]
    found = []
    for predictor in SHOWN:
        errors = [abs(error) for one in trusted if (error := one.error(predictor)) is not None]
        if errors:
            found.append(f"{predictor} {median(errors):.1f}{' points' if trusted[0].in_points else '%'}")
    return (f"Median error on rows held out: {', '.join(found)}.",) if found else ()


def _remarks(metric: str, figures: Sequence[Figure]) -> tuple[str, ...]:
    said = []
    if all(one.fact_kind == "derived" for one in figures):
        said.append("The report works it out from its other figures.")
    if not is_learned(metric):
        said.append("The hybrid learns rates and processor time only: physics is alone here.")
    excuses = {answer.excuse for one in figures for answer in one.answers.values() if answer.excuse}
    if excuses:
        said.append(f"No point where the answer was: {'; '.join(sorted(excuses))}.")
    return tuple(said)


def _rounded(said: Answer) -> list[float | None]:
    return [None if one is None else float(f"{one:.6g}") for one in (said.value, said.lo90, said.hi90)]
