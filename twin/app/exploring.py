"""What if: a configuration with one or two fields varied, what every predictor says of it, and where another
resource becomes the limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from twin.app.answering import Twin, known_number
from twin.core.checking import KNOWN
from twin.core.columns import Columns
from twin.core.prediction import Excuse, Prediction

# between two values with different limits, so many are looked at together, so many times over
_SECTIONS, _ROUNDS = 16, 3


@dataclass(frozen=True)
class Point:
    """A combination of the varied fields: what each predictor says of the metric, and how long a message
    takes at the offered rate, or at full load where none is told."""

    changes: Mapping[str, Any]
    flat: Mapping[str, Any]
    answers: Mapping[str, Prediction | Excuse]
    response_ms: float | None

    @property
    def answer(self) -> Prediction | Excuse:
        """Of the predictor to believe first."""
        return next(iter(self.answers.values()))


@dataclass(frozen=True)
class Turn:
    """The first value of a field at which something else limits the rate; `others` are the other varied
    fields."""

    field: str
    at: float
    before: str
    after: str
    others: Mapping[str, Any]


@dataclass(frozen=True)
class Exploration:
    metric: str
    points: tuple[Point, ...]
    turns: tuple[Turn, ...]


def explore(
    twin: Twin,
    combinations: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    metric: str,
    predictors: Sequence[str] = (),
) -> Exploration:
    """Of changes and the flat configurations that they make, by all predictors that tell the metric, or by
    those that are named."""
    points = answered(twin, combinations, metric, predictors)
    return Exploration(metric, points, turns(twin, points))


def answered(
    twin: Twin,
    combinations: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    metric: str,
    predictors: Sequence[str] = (),
) -> tuple[Point, ...]:
    columns = Columns.of_rows([flat for _, flat in combinations])
    asked = predictors or twin.predictors(metric)
    answers = {name: one.typed() for name, one in twin.answers(columns, metric, asked).items()}
    responses = twin.response_ms(columns)
    return tuple(
        Point(changes, flat, {name: answers[name][at] for name in asked}, known_number(responses[at]))
        for at, (changes, flat) in enumerate(combinations)
    )


def turns(twin: Twin, points: Sequence[Point]) -> tuple[Turn, ...]:
    """Along the first varied field that counts something."""
    fields = [name for name in points[0].changes if KNOWN[name].kind in ("integer", "number")]
    if not fields:
        return ()
    field = fields[0]
    lines: dict[tuple[Any, ...], list[tuple[Point, str]]] = {}
    for point in points:
        limit = None if isinstance(point.answer, Excuse) else point.answer.bottleneck
        if limit is not None:
            others = tuple(value for name, value in point.changes.items() if name != field)
            lines.setdefault(others, []).append((point, limit))
    found = []
    for line in lines.values():
        line.sort(key=lambda one: one[0].changes[field])
        for (low, before), (high, after) in pairwise(line):
            if before != after:
                found.append(_turn(twin, low, high, field, before, after))
    return tuple(found)


def _turn(twin: Twin, low: Point, high: Point, field: str, before: str, after: str) -> Turn:
    """Where the limit is the one of before for the last time, to a four-thousandth of the step."""
    whole = KNOWN[field].kind == "integer"
    start, end = float(low.changes[field]), float(high.changes[field])
    for _ in range(_ROUNDS):
        values = np.linspace(start, end, _SECTIONS + 1)[1:-1]
        if whole:
            values = np.unique(np.round(values))
            values = values[(values > start) & (values < end)]
        if not len(values):
            break
        between = [{**low.flat, field: value} for value in values.tolist()]
        limits = twin.physics.limits(Columns.of_rows(between))
        # a value without an answer says nothing of its limit
        others = np.flatnonzero([limit not in (before, None) for limit in limits])
        if len(others):
            end, after = float(values[others[0]]), limits[others[0]]
            values = values[: others[0]]
        start = float(values[-1]) if len(values) else start
    at = end if whole else float(f"{end:.6g}")
    return Turn(field, at, before, after, {name: one for name, one in low.changes.items() if name != field})
