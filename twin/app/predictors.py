"""Who can be asked, made when it is asked for: loading a model takes seconds."""

from __future__ import annotations

from dataclasses import dataclass

from training.batch import Answering, Asked
from twin.calibration.predictor import PREDICTOR as ANALYTIC
from twin.calibration.simulated import PREDICTOR as SIMULATED
from twin.calibration.simulated import SimulatedPredictor
from twin.core.columns import Columns
from twin.core.prediction import Answers, Predictor
from twin.core.settings import Settings
from twin.core.tables import TARGETS

ALL = "all"
# those that the exam compares
_COMPARED = ("hybrid", "analytic", "regression", "nearest")
NAMES = (*_COMPARED, SIMULATED)


def asked(settings: Settings, predictor: str, target: str) -> Asked:
    """One predictor and target, or all of them. The analytic model and the simulator that plays it need no
    registry: their demands are in the lake."""
    predictors = _COMPARED if predictor == ALL else (predictor,)
    targets = TARGETS if target == ALL else (target,)
    by: Answering
    if predictor in (ANALYTIC, SIMULATED):
        from twin.app.calibration import analytic_predictor

        analytic = analytic_predictor(settings)
        by = _Physics(analytic if predictor == ANALYTIC else SimulatedPredictor(analytic))
    else:
        from training.registry import champion_model

        by = champion_model(settings)
    return Asked(by, predictors, targets)


@dataclass(frozen=True)
class _Physics:
    predictor: Predictor

    def answer(self, columns: Columns, target: str, predictor: str) -> Answers:  # noqa: ARG002
        return self.predictor.answer(columns, target)
