"""Who answers a planner's questions: the champion with all its predictors, or physics alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from training.model import HYBRID, PREDICTORS, TwinModel
from twin.calibration.predictor import PREDICTOR as ANALYTIC
from twin.calibration.predictor import AnalyticPredictor, by_system
from twin.calibration.simulated import PREDICTOR as SIMULATED
from twin.calibration.simulated import SimulatedPredictor
from twin.core.columns import Columns, Numbers, Texts
from twin.core.prediction import THROUGHPUT, Answers
from twin.core.settings import Settings
from twin.core.tables import TARGETS

_RESPONSE = "response_ms"


@dataclass(frozen=True)
class Searched:
    """The highest rates of some configurations, without intervals, and where there is none, why."""

    rate: Numbers
    excuse: Texts


@dataclass(frozen=True)
class Twin:
    physics: AnalyticPredictor
    model: TwinModel | None = None

    def predictors(self, metric: str) -> tuple[str, ...]:
        """Those that tell a metric, the one to believe first. Only rates and processor times are learned."""
        if self.model is None or metric not in TARGETS:
            return (ANALYTIC,)
        return tuple(reversed(PREDICTORS))

    def answer(self, columns: Columns, metric: str, predictor: str | None = None) -> Answers:
        predictor = predictor or self.predictors(metric)[0]
        if predictor == SIMULATED:
            return SimulatedPredictor(self.physics).answer(columns, metric)
        if self.model is None or predictor == ANALYTIC:
            return self.physics.answer(columns, metric)
        return self.model.answer(columns, metric, predictor)

    def answers(self, columns: Columns, metric: str, predictors: Sequence[str]) -> dict[str, Answers]:
        """Of several predictors; physics is evaluated once for itself and for the hybrid."""
        found: dict[str, Answers] = {}
        if self.model is not None and {HYBRID, ANALYTIC} <= set(predictors):
            found[HYBRID], found[ANALYTIC] = self.model.answer_with_physics(columns, metric)
        return {
            name: found[name] if name in found else self.answer(columns, metric, name) for name in predictors
        }

    def search(self, columns: Columns) -> Searched:
        found = Searched(np.full(columns.size, np.nan), np.full(columns.size, None, dtype=object))
        for system, rows in by_system(columns):
            asked = columns.only(rows)
            if self.model is None:
                foretold = self.physics.foretell(system, asked, THROUGHPUT, doubts=False)
                logarithms = foretold.value
            else:
                foretold, logarithms = self.model.expected(system, asked, THROUGHPUT)
            found.rate[rows], found.excuse[rows] = np.exp(logarithms), foretold.excuse
        return found

    def busy_at(self, columns: Columns) -> Texts:
        """How busy an offered rate makes each resource, as physics says."""
        found = np.full(columns.size, None, dtype=object)
        for system, rows in by_system(columns):
            foretold = self.physics.foretell(system, columns.only(rows), THROUGHPUT, doubts=False)
            found[rows] = foretold.utilisation
        return found

    def response_ms(self, columns: Columns) -> Numbers:
        """How long a message takes at the offered rate, or at full load where none is told."""
        found = np.full(columns.size, np.nan)
        for system, rows in by_system(columns):
            found[rows] = np.exp(
                self.physics.foretell(system, columns.only(rows), _RESPONSE, doubts=False).value
            )
        return found


def known_number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def twin_of(settings: Settings, calibration: Path | None = None) -> Twin:
    """The champion; where nobody has trained one, or a file of demands is given, physics alone."""
    from training.registry import NoChampion, champion_model
    from twin.app.calibration import analytic_predictor

    if calibration is None:
        try:
            model = champion_model(settings)
        except NoChampion:
            pass
        else:
            return Twin(model.physics, model)
    return Twin(analytic_predictor(settings, calibration))
