"""A curve of the page: the configuration as it stands, and one of its fields moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twin.app.answering import Twin
from twin.app.asking import BadQuestion, is_wide, spaced
from twin.app.exploring import Point, answered, turns
from twin.app.page.figures import Figures
from twin.app.page.home import described, slider_of
from twin.app.telling import told_answers, told_turn, utilisation_of
from twin.core.checking import KNOWN, problems_of
from twin.core.configuration import Configuration
from twin.core.fields import Field
from twin.core.metrics import METRICS
from twin.core.prediction import Excuse
from twin.systems.registry import BY_FAMILY

_POINTS = 24


def curve(
    twin: Twin,
    figures: Figures,
    base: Configuration,
    along: str | None,
    metric: str,
    predictors: Sequence[str] = (),
) -> dict[str, Any]:
    """`predictors`: those that are drawn; all that tell the metric where none is named."""
    flat = base.flat()
    family = str(flat["family"])
    if BY_FAMILY[family].target(metric) is None:
        raise BadQuestion(("metric", f"{metric!r} is nothing that the model of {family} tells"))
    asked = [name for name in twin.predictors(metric) if not predictors or name in predictors]
    rows: list[tuple[dict[str, Any], dict[str, Any]]] = []
    measured: list[dict[str, Any]] = []
    if along is not None:
        if along not in flat or along == "family":
            raise BadQuestion(("along", f"{along!r} is no field of {family}"))
        measured = figures.beside(flat, along, metric)
        values = _values(twin, flat, KNOWN[along], [one["x"] for one in measured])
        rows = [({along: value}, flat | {along: value}) for value in values]
    # the configuration itself goes along: one evaluation of all
    *points, here = answered(twin, [*rows, ({}, flat)], metric, asked)
    return {
        "metric": described(METRICS[metric]),
        "along": None if along is None else _axis(KNOWN[along], points),
        "points": [_point(one) for one in points],
        "turns": [told_turn(one) for one in turns(twin, points)] if points else [],
        "measured": measured,
        "here": _here(here),
    }


def _values(twin: Twin, flat: Mapping[str, Any], field: Field, measured: Sequence[Any]) -> list[Any]:
    """Over the slider's range, with what was measured and where the configuration stands."""
    if field.choices:
        tried: list[Any] = list(field.choices)
    elif field.kind == "flag":
        tried = [False, True]
    else:
        slider = slider_of(twin, str(flat["family"]), field, flat[field.name])
        if slider is None:
            raise BadQuestion(("along", f"{field.name} has no range to draw along"))
        whole = field.kind == "integer"
        tried = sorted(
            {*spaced(slider["from"], slider["to"], _POINTS, whole), *measured}
            | ({flat[field.name]} if flat[field.name] is not None else set())
        )
    given = {name: value for name, value in flat.items() if value is not None}
    fine = [value for value in tried if not problems_of(given | {field.name: value})]
    if not fine:
        raise BadQuestion(("along", f"no value of {field.name} makes a configuration"))
    return fine


def _axis(field: Field, points: Sequence[Point]) -> dict[str, Any]:
    values = [one.changes[field.name] for one in points]
    numeric = field.kind in ("integer", "number")
    wide = numeric and is_wide(min(values), max(values))
    return described(field) | {"kind": field.kind, "log": wide}


def _point(point: Point) -> dict[str, Any]:
    (value,) = point.changes.values()
    return {
        "x": value if isinstance(value, int | float) and not isinstance(value, bool) else str(value).lower(),
        "answers": told_answers(point.answers),
        "bottleneck": None if isinstance(point.answer, Excuse) else point.answer.bottleneck,
        "response_ms": point.response_ms,
    }


def _here(point: Point) -> dict[str, Any]:
    answer = None if isinstance(point.answer, Excuse) else point.answer
    return {
        "answers": told_answers(point.answers),
        "bottleneck": answer.bottleneck if answer else None,
        "utilisation": utilisation_of(point.answer),
        "response_ms": point.response_ms,
        "offered_rate_msgs_per_s": point.flat["offered_rate_msgs_per_s"],
        "in_domain": answer.in_domain if answer else None,
        "domain_reason": answer.domain_reason if answer else None,
    }
