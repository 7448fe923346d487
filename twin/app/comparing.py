"""What was measured on live brokers beside what the twin says, as rows that print or go out as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from training.live_exam import Paper
from training.model import TwinModel
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.prediction import THROUGHPUT, Excuse, Prediction
from twin.harness.measured import Measured


def compared(points: Sequence[Measured], model: TwinModel) -> list[dict[str, Any]]:
    answers = model.answer(Columns.of([one.configuration for one in points]), THROUGHPUT).typed()
    return [
        {"experiment": point.experiment, "runs": len(point.rates), **_measured(point), **_said(point, answer)}
        for point, answer in zip(points, answers, strict=True)
    ]


def examined(paper: Paper, rows: bool) -> dict[str, Any]:
    noises = [100 * one.point.noise for one in paper.answers if one.point.noise is not None]
    told: dict[str, Any] = {
        "experiment": paper.experiment,
        "product": paper.product,
        "persistent": paper.persistent,
        "learned": paper.learned,
        "asked": len(paper.answers),
        "excused": len(paper.answers) - len(paper.errors),
        "median_error_pct": median(paper.errors) if paper.errors else None,
        "allowed_median_error_pct": paper.allowed_pct,
        "greatest_error_pct": max(paper.errors, default=None),
        "noise_pct": median(noises) if noises else None,
        "passed": paper.passed,
    }
    if rows:
        told["rows"] = [{**_measured(one.point), **_said(one.point, one.answer)} for one in paper.answers]
    return told


def _measured(point: Measured) -> dict[str, Any]:
    return {
        "configuration": columns_of(point.configuration),
        "measured_msgs_per_s": point.rate,
        "noise_pct": None if point.noise is None else 100 * point.noise,
    }


def _said(point: Measured, answer: Prediction | Excuse) -> dict[str, Any]:
    if isinstance(answer, Excuse):
        nothing = dict.fromkeys(("predicted_msgs_per_s", "lo90", "hi90", "error_pct"))
        return {**nothing, "excuse": answer.excuse}
    return {
        "predicted_msgs_per_s": answer.value,
        "lo90": answer.lo90,
        "hi90": answer.hi90,
        "error_pct": 100 * (answer.value / point.rate - 1),
        "excuse": None,
    }


def columns_of(configuration: Configuration) -> dict[str, Any]:
    return {name: value for name, value in configuration.flat().items() if value is not None}
