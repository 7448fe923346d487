"""What a planner is told, as plain values: for JSON on the terminal and on the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from twin.app.advising import Advice, Advised
from twin.app.examining import Option
from twin.app.exploring import Exploration, Point, Turn
from twin.app.sizing import Sizing, Step
from twin.core.metrics import METRICS
from twin.core.prediction import Excuse, Prediction

_ENDS = ("value", "lo50", "hi50", "lo90", "hi90")


def told_exploration(explored: Exploration) -> list[dict[str, Any]]:
    """A row for each point, flat, with what the predictor to believe says; where the limit has changed since
    the point before, from which value on."""
    return [
        {
            **point.changes,
            **point.answer.model_dump(),
            "predictors": told_answers(point.answers),
            "response_ms": point.response_ms,
            "turns": [told_turn(turn) for turn in turns],
        }
        for point, turns in zip(explored.points, _turns_before(explored), strict=True)
    ]


def told_answers(answers: Mapping[str, Prediction | Excuse]) -> dict[str, dict[str, Any]]:
    return {name: told_answer(answer) for name, answer in answers.items()}


def told_answer(answer: Prediction | Excuse) -> dict[str, Any]:
    if isinstance(answer, Excuse):
        return {"excuse": answer.excuse}
    return {name: getattr(answer, name) for name in _ENDS}


def told_turn(turn: Turn) -> dict[str, Any]:
    return {"field": turn.field, "at": turn.at, "before": turn.before, "after": turn.after}


def told_sizing(sizing: Sizing) -> dict[str, Any]:
    return {
        **sizing.wanted.model_dump(),
        "currency": sizing.currency,
        "examined": sizing.examined,
        "dearer": sizing.dearer,
        "asked": _told_option(sizing.asked),
        "accepted": [_told_option(one) for one in sizing.accepted],
        "rejected": [_told_option(one) for one in sizing.rejected],
        "rejected_by_reason": [
            {"reason": reason, "options": count} for reason, count in sizing.rejected_by.items()
        ],
        "sensitivity": [_told_step(one) for one in sizing.steps],
    }


def told_advice(advised: Advised) -> dict[str, Any]:
    return {"bottleneck": advised.bottleneck, "advice": [_told_remedy(one) for one in advised.advice]}


def utilisation_of(answer: Prediction | Excuse) -> dict[str, float]:
    found: dict[str, float] = {}
    if isinstance(answer, Prediction) and answer.utilisation:
        found = json.loads(answer.utilisation)
    return found


def value_of(answer: Prediction | Excuse | None) -> float | None:
    return answer.value if isinstance(answer, Prediction) else None


def _turns_before(explored: Exploration) -> list[list[Turn]]:
    """Each turn at the point that comes next, which has its value or the first beyond."""
    found: list[list[Turn]] = [[] for _ in explored.points]
    for turn in explored.turns:
        beyond = [at for at, point in enumerate(explored.points) if _is_beyond(point, turn)]
        found[min(beyond, key=lambda at: explored.points[at].changes[turn.field])].append(turn)
    return found


def _is_beyond(point: Point, turn: Turn) -> bool:
    same_line = all(point.changes[name] == value for name, value in turn.others.items())
    return same_line and point.changes[turn.field] >= turn.at


def _told_option(option: Option) -> dict[str, Any]:
    told = asdict(option)
    del told["verdict"]
    return told


def _told_step(step: Step) -> dict[str, Any]:
    return asdict(step) | {"gain_pct_per_1000": step.gain_pct_per_1000}


def _told_remedy(advice: Advice) -> dict[str, Any]:
    after = advice.after if isinstance(advice.after, Prediction) else None
    return {
        "name": advice.remedy.name,
        "says": advice.remedy.says,
        "sources": [one.model_dump() for one in advice.remedy.sources],
        "change": advice.change,
        "metric": advice.remedy.metric,
        "unit": METRICS[advice.remedy.metric].unit,
        "before": value_of(advice.before),
        "after": value_of(after),
        "lo90": after.lo90 if after else None,
        "hi90": after.hi90 if after else None,
        "gain_pct": advice.gain_pct,
        "bottleneck": after.bottleneck if after else None,
        "excuse": advice.excuse,
    }
