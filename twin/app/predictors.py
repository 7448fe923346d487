"""Who can be asked, made when it is asked for: loading a model takes seconds."""

from __future__ import annotations

from dataclasses import dataclass

from training.batch import Answering, Asked
from twin.calibration.predictor import PREDICTOR as ANALYTIC
from twin.calibration.predictor import AnalyticPredictor
from twin.core.columns import Columns
from twin.core.prediction import Answers
from twin.core.settings import Settings
from twin.core.tables import TARGETS

ALL = "all"
NAMES = ("hybrid", "analytic", "regression", "nearest")


def asked(settings: Settings, predictor: str, target: str) -> Asked:
    """One predictor and target, or all of them. The analytic model alone needs no registry: it is in the
    lake."""
    predictors = NAMES if predictor == ALL else (predictor,)
    targets = TARGETS if target == ALL else (target,)
    by: Answering
    if predictors == (ANALYTIC,):
        from twin.app.calibration import analytic_predictor

        by = _Physics(analytic_predictor(settings))
    else:
        from training.registry import champion_model

        by = champion_model(settings)
    return Asked(by, predictors, targets)


@dataclass(frozen=True)
class _Physics:
    predictor: AnalyticPredictor

    def answer(self, columns: Columns, target: str, predictor: str) -> Answers:  # noqa: ARG002
        return self.predictor.answer(columns, target)
