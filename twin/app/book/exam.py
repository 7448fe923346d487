"""The exams as tables and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from training.backtest import Exam
from training.model import HYBRID, PREDICTORS
from training.splits import PROTOCOLS
from twin.app.book.charting import Chart
from twin.core.metrics import METRICS
from twin.core.tables import TARGETS

# what each of them asks
ASKS = {
    "configuration": "An unseen point of a known table: a fifth of the configurations is left out at a time.",
    "table": "An unseen table: a flow, a layout or a mode that nothing was measured of.",
    "anchored": "An unseen table of which only the busiest row is known: a planner who has measured once.",
    "platform": "A report that nobody has read: all its figures are left out.",
}
FIGURES = {
    "n": "rows",
    "n_excused": "excused",
    "median_ape": "median error, %",
    "mape": "mean error, %",
    "p90_ape": "90% within, %",
    "coverage90": "90% interval covers, %",
    "width90": "its width, % of the value",
}
_SHARES = ("coverage90", "width90")


@dataclass(frozen=True)
class ScoreRow:
    part: str
    predictor: str
    cells: Sequence[str]


@dataclass(frozen=True)
class Sat:
    """A protocol; without rows it has not been sat."""

    protocol: str
    asks: str
    scores: Mapping[str, Sequence[ScoreRow]]
    charts: Sequence[Chart]


def sat(exams: Mapping[str, Exam]) -> list[Sat]:
    """All protocols, in their order."""
    return [
        Sat(
            protocol,
            ASKS[protocol],
            _scores(exams[protocol]) if protocol in exams else {},
            _charts(exams[protocol]) if protocol in exams else (),
        )
        for protocol in PROTOCOLS
    ]


def _scores(exam: Exam) -> dict[str, list[ScoreRow]]:
    return {
        target: [
            ScoreRow(part, predictor, [_cell(name, by_predictor[predictor][name]) for name in FIGURES])
            for part, by_predictor in {
                "all reports": of_target["overall"],
                **of_target["reports"],
                **of_target.get("views", {}),
            }.items()
            for predictor in PREDICTORS
        ]
        for target in TARGETS
        if (of_target := exam.scores.get(target)) is not None
    }


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name in _SHARES:
        return f"{100 * value:.1f}"
    return str(value) if name in ("n", "n_excused") else f"{value:.2f}"


def _charts(exam: Exam) -> list[Chart]:
    main = exam.rows[exam.rows["view"] == ""]
    return [
        chart
        for target in TARGETS
        if len(rows := main[main["target"] == target])
        for chart in (_said(exam.protocol, target, rows), _errors(exam.protocol, target, rows))
    ]


def _said(protocol: str, target: str, rows: pd.DataFrame) -> Chart:
    """What the hybrid said beside what was measured."""
    field = METRICS[target]
    answered = rows[(rows["predictor"] == HYBRID) & rows["value"].notna()]
    series = [
        {
            "name": f"{source} ({len(part)})",
            "points": [
                [_short(one[name]) for name in ("measured", "value", "lo90", "hi90")] + [one["exam_group"]]
                for one in part.sort_values("configuration_id").to_dict("records")
            ],
        }
        for source, part in answered.groupby("source_id")
    ]
    return Chart(
        key=f"{protocol}-{target}-said",
        title=f"{field.description}, {field.unit}: hybrid beside measured",
        label=f"{len(answered)} rows that the hybrid was not given, its answers beside the measured values, "
        "with 90% intervals. The table below has the scores.",
        notes=("On the line the answer is what was measured.",),
        spec={"kind": "exam", "unit": field.unit or "", "series": series},
    )


def _errors(protocol: str, target: str, rows: pd.DataFrame) -> Chart:
    """What share of the rows each predictor had within an error."""
    series = []
    for predictor in PREDICTORS:
        part = rows[(rows["predictor"] == predictor) & rows["value"].notna()]
        errors = sorted(((part["value"] / part["measured"] - 1).abs() * 100).tolist())
        series.append({"name": predictor, "errors": [_short(one) for one in errors]})
    return Chart(
        key=f"{protocol}-{target}-errors",
        title=f"{METRICS[target].description}: share of rows within an error",
        label="For each predictor the share of answered rows whose error is at most so large. The table "
        "below has the medians.",
        notes=("Answered rows only; the further left a line, the better.",),
        spec={"kind": "errors", "series": series},
    )


def _short(value: Any) -> float:
    return float(f"{value:.5g}")
