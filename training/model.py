"""The twin as one model: physics, nearest measurement, regressor, and the hybrid of them, for every
target."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from training import nearest, regression
from training.conformal import Reach
from training.correction import NO_CORRECTION, Correction
from training.dataset import Data
from training.hyperparameters import shipped
from training.kinds import Scale
from training.nearest import Nearest
from training.regression import Regression
from twin.calibration import predictor as analytic
from twin.calibration.calibration import Calibration, calibration_of
from twin.calibration.fitting import fit
from twin.calibration.observations import Observations
from twin.calibration.predictor import AnalyticPredictor, Foretold, answers_from, by_system
from twin.core.columns import Codes, Columns, Texts, without_text
from twin.core.configuration import Configuration
from twin.core.prediction import THROUGHPUT, Answers, Excuse, Prediction
from twin.core.tables import TARGETS
from twin.queueing.network import Array
from twin.systems.model import System
from twin.systems.registry import SYSTEMS

HYBRID = "hybrid"
PREDICTORS = (nearest.PREDICTOR, regression.PREDICTOR, analytic.PREDICTOR, HYBRID)
_OFFERED = "offered_rate_msgs_per_s"
_ENDS = ("value", "lo50", "hi50", "lo90", "hi90")


@dataclass(frozen=True)
class Corrected:
    """What physics foretells, and experience added to it. In logarithms: the value, the doubt of it without
    the move between machines, the noise of a run, and how many standard deviations the intervals go."""

    foretold: Foretold
    value: Array
    doubt: Array
    noise: Array
    inner: Array
    outer: Array


@dataclass(frozen=True)
class TwinModel:
    calibrations: dict[str, Calibration]
    corrections: dict[tuple[str, str], Correction]
    nearest: dict[str, Nearest]
    regressions: dict[str, Regression]
    table_version: int
    version: str = "unregistered"

    @classmethod
    def fit(
        cls,
        data: Data,
        systems: Collection[str] | None = None,
        parameters: dict[str, Any] | None = None,
        told: Callable[[str], None] = lambda _: None,
    ) -> TwinModel:
        """`systems`: only the physics of these, where nobody will ask about the others; `parameters` of the
        regressor, else the shipped ones."""
        rows = {target: data.ids(target) for target in TARGETS if data.ids(target)}
        nearests, regressions, errors = {}, {}, {}
        for target, ids in rows.items():
            told(f"regressor of {target}")
            columns, logarithms = data.columns(ids), data.logarithms(target, ids)
            nearests[target] = Nearest.fit(columns, tuple(ids), logarithms)
            regressions[target] = Regression.fit(
                columns, logarithms, data.groups(ids), target, parameters or shipped()
            )
            errors[target] = dict(zip(ids, regressions[target].held_out, strict=True))
        calibrations, corrections = {}, {}
        for system in SYSTEMS:
            if not system.parameters or (systems is not None and system.name not in systems):
                continue
            observations = Observations.of(system, data.figures)
            if not observations.rows:
                continue
            told(f"physics of {system.name}")
            fitted = fit(observations)
            calibration = calibrations[system.name] = calibration_of(fitted)
            for target in TARGETS:
                corrections[system.name, target] = Correction.fit(
                    fitted, calibration, target, errors.get(target, {})
                )
        return cls(calibrations, corrections, nearests, regressions, data.table_version)

    def answer(self, columns: Columns, target: str, predictor: str = HYBRID) -> Answers:
        match predictor:
            case analytic.PREDICTOR:
                return self.physics.answer(columns, target)
            case nearest.PREDICTOR:
                return self._nearest(columns, target)
            case regression.PREDICTOR:
                return self._regression(columns, target)
        return self._hybrid(columns, target, self._parts(columns, target))

    def answer_with_physics(self, columns: Columns, target: str) -> tuple[Answers, Answers]:
        """The hybrid's answers and those of physics, from one evaluation where no rate is offered: at an
        offered one the two ask different questions."""
        parts = list(self._parts(columns, target))
        hybrid = self._hybrid(columns, target, parts)
        if np.isfinite(columns.number(_OFFERED)).any():
            return hybrid, self.physics.answer(columns, target)
        physics = Answers.none(columns.size, analytic.PREDICTOR, target, self.table_version)
        for system, rows, corrected in parts:
            physics.put(rows, self.physics.with_intervals(system, corrected.foretold, target))
        return hybrid, physics

    def _parts(self, columns: Columns, target: str) -> Iterator[tuple[System, Codes, Corrected]]:
        for system, rows in by_system(columns):
            yield system, rows, self.corrected(system, columns.only(rows), target)

    def _hybrid(
        self, columns: Columns, target: str, parts: Iterable[tuple[System, Codes, Corrected]]
    ) -> Answers:
        answers = Answers.none(columns.size, HYBRID, target, self.table_version)
        for _, rows, corrected in parts:
            answers.put(rows, self.told(columns.only(rows), target, corrected))
        answers.model_version[without_text(answers.excuse)] = self.version
        return answers

    def predict(
        self, configurations: Sequence[Configuration], target: str = THROUGHPUT, predictor: str = HYBRID
    ) -> list[Prediction | Excuse]:
        return self.answer(Columns.of(configurations), target, predictor).typed()

    @cached_property
    def physics(self) -> AnalyticPredictor:
        return AnalyticPredictor(self.calibrations, self.table_version)

    def corrected(self, system: System, columns: Columns, target: str) -> Corrected:
        foretold, correction = self._foretold(system, columns, target)
        added, variance, known = correction.at(columns)
        value = self._blended(correction, columns, target, foretold, added)
        doubt = np.sqrt(foretold.doubt**2 + variance)
        inner, outer = correction.reach(known)
        return Corrected(foretold, value, doubt, foretold.noise * correction.noise_factor, inner, outer)

    def expected(self, system: System, columns: Columns, target: str) -> tuple[Foretold, Array]:
        """What physics foretells without doubts, and the corrected value: enough to search with."""
        foretold, correction = self._foretold(system, columns, target, doubts=False)
        added = correction.expected(columns)
        return foretold, self._blended(correction, columns, target, foretold, added)

    def _foretold(
        self, system: System, columns: Columns, target: str, doubts: bool = True
    ) -> tuple[Foretold, Correction]:
        """Of the highest rate: an offered one is not for rows to correct."""
        asked = columns.without(_OFFERED) if target == THROUGHPUT else columns
        foretold = self.physics.foretell(system, asked, target, doubts)
        return foretold, self.corrections.get((system.name, target), NO_CORRECTION)

    def _blended(
        self, correction: Correction, columns: Columns, target: str, foretold: Foretold, added: Array
    ) -> Array:
        if correction.regression_weight:
            learned = self.regressions[target].at(columns)[0]
            added = added + correction.regression_weight * (learned - foretold.value - added)
        return foretold.value + added

    def told(self, columns: Columns, target: str, corrected: Corrected) -> Answers:
        """A corrected value as an answer."""
        spread = np.sqrt(corrected.doubt**2 + corrected.foretold.machine**2 + corrected.noise**2)
        answers = answers_from(
            corrected.foretold, corrected.value, corrected.inner * spread, corrected.outer * spread,
            predictor=HYBRID, target=target, table_version=self.table_version,
        )  # fmt: skip
        if target == THROUGHPUT:
            self._at_offered_rates(columns, answers)
        return answers

    def _at_offered_rates(self, columns: Columns, answers: Answers) -> None:
        """Where a rate is offered no more than that flows, and what can be sustained flows as physics says;
        stations are as busy as it makes them."""
        rows = np.flatnonzero(np.isfinite(columns.number(_OFFERED)))
        if not len(rows):
            return
        offered = self.physics.answer(columns.only(rows), answers.target)
        most = columns.number(_OFFERED)[rows]
        sustained = most < answers.value[rows]
        for name in _ENDS:
            numbers = getattr(answers, name)
            flowing = np.where(sustained, getattr(offered, name), np.inf)
            numbers[rows] = np.minimum(np.minimum(numbers[rows], flowing), most)
        for name in ("bottleneck", "utilisation", "domain_reason", "excuse"):
            getattr(answers, name)[rows] = getattr(offered, name)

    def _nearest(self, columns: Columns, target: str) -> Answers:
        found = self.nearest.get(target)
        if found is None:
            return self._none(columns, nearest.PREDICTOR, target)
        nothing = np.full(columns.size, None, dtype=object)
        return self._learned(nearest.PREDICTOR, target, found.at(columns), found.reach, nothing, nothing)

    def _regression(self, columns: Columns, target: str) -> Answers:
        found = self.regressions.get(target)
        if found is None:
            return self._none(columns, regression.PREDICTOR, target)
        logarithms, excuses, reasons = found.at(columns)
        return self._learned(regression.PREDICTOR, target, logarithms, found.reach, excuses, reasons)

    def _none(self, columns: Columns, predictor: str, target: str) -> Answers:
        excuse = f"no measurement tells {target}"
        return Answers.none(columns.size, predictor, target, self.table_version, excuse)

    def _learned(
        self, predictor: str, target: str, logarithms: Array, reach: Reach, excuses: Texts, reasons: Texts
    ) -> Answers:
        answers = Answers.none(len(logarithms), predictor, target, self.table_version, excuses)
        steps = (0.0, -reach.inner, reach.inner, -reach.outer, reach.outer)
        answered = without_text(excuses)
        for name, step in zip(_ENDS, steps, strict=True):
            getattr(answers, name)[answered] = np.exp(logarithms[answered] + step)
        answers.domain_reason[answered] = reasons[answered]
        answers.model_version[answered] = self.version
        return answers

    @property
    def scale(self) -> Scale:
        """What counts as far among all measured configurations."""
        return self.nearest[THROUGHPUT].scale

    def registered_as(self, version: str) -> TwinModel:
        return replace(self, version=version)

    def save(self, folder: Path) -> None:
        """Plain JSON and XGBoost's own JSON: loading unpickles nothing."""
        document = {
            "table_version": self.table_version,
            "version": self.version,
            "calibrations": [one.model_dump(mode="json") for one in self.calibrations.values()],
            "corrections": [
                {"system": system, "target": target} | one.to_plain()
                for (system, target), one in self.corrections.items()
            ],
            "nearest": {target: one.to_plain() for target, one in self.nearest.items()},
        }
        (folder / "model.json").write_text(json.dumps(document))
        for target, one in self.regressions.items():
            one.save(folder, target)

    @classmethod
    def load(cls, folder: Path) -> TwinModel:
        document = json.loads((folder / "model.json").read_text())
        calibrations = [Calibration.model_validate(one) for one in document["calibrations"]]
        return cls(
            {one.system: one for one in calibrations},
            {(one["system"], one["target"]): Correction.from_plain(one) for one in document["corrections"]},
            {target: Nearest.from_plain(one) for target, one in document["nearest"].items()},
            {target: Regression.load(folder, target) for target in document["nearest"]},
            document["table_version"],
            document["version"],
        )
