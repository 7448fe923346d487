"""A few measurements of the user's own that pull the answers to the user's machine.

Two answers are wrong together as far as they are alike: on one machine they share what the move to it leaves
open, and what distinguishes this site from the measured one; near each other they share what is not known of
their demands. So an anchor's error says something about every answer, and nothing about another system.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from training.kinds import distances
from training.model import HYBRID, Corrected, TwinModel
from twin.calibration.predictor import by_system
from twin.core.columns import Columns, Texts, without_text
from twin.core.prediction import Answers
from twin.queueing.network import Array
from twin.systems.model import System

# Stated, not fitted: nobody has measured one configuration at many sites. One standard deviation of the
# logarithm between two installations of the same machine and product, and between workloads of one site.
_SITE = 0.15
_WORKLOAD = 0.10
# how quickly workloads cease to be alike: per differing choice, and in spreads of the measured numbers
_FADING = 0.5
_LENGTH = 1.5
_MACHINE = ("os", "machine", "product", "version")


@dataclass(frozen=True)
class Anchored:
    """A model with the measured logarithms of some configurations, by target; NaN where one was not
    measured."""

    model: TwinModel
    anchors: Columns
    logarithms: dict[str, Array]

    def answer(self, columns: Columns, target: str, predictor: str) -> Answers:
        """Anchors move the hybrid; the others say what they say."""
        if predictor != HYBRID or target not in self.logarithms:
            return self.model.answer(columns, target, predictor)
        answers = self.model.answer(columns, target, HYBRID)
        for system, rows in by_system(columns):
            asked = columns.only(rows)
            corrected = self.model.corrected(system, asked, target)
            moved = self._moved(system, asked, target, corrected)
            if moved is not None:
                part = self.model.told(asked, target, moved)
                part.model_version[:] = answers.model_version[rows]
                answers.put(rows, part)
        return answers

    def unused(self, target: str) -> Texts:
        """Per anchor why it cannot be compared with the model, or None."""
        found = np.full(self.anchors.size, None, dtype=object)
        for system, rows in by_system(self.anchors):
            found[rows] = self.model.corrected(system, self.anchors.only(rows), target).foretold.excuse
        return found

    def _moved(self, system: System, asked: Columns, target: str, corrected: Corrected) -> Corrected | None:
        own = self.anchors.is_("family", *system.families) & np.isfinite(self.logarithms[target])
        anchors = self.anchors.only(np.flatnonzero(own))
        if not anchors.size:
            return None
        known = self.model.corrected(system, anchors, target)
        usable = np.flatnonzero(without_text(known.foretold.excuse))
        if not len(usable):
            return None
        anchors, errors = anchors.only(usable), (self.logarithms[target][own] - known.value)[usable]
        doubts = known.doubt[usable], known.foretold.machine[usable]
        shared = self._shared(asked, corrected.doubt, corrected.foretold.machine, anchors, *doubts)
        among = self._shared(anchors, *doubts, anchors, *doubts) + np.diag(known.noise[usable] ** 2)
        weights = np.linalg.solve(among, shared.T)
        prior = corrected.doubt**2 + corrected.foretold.machine**2 + _SITE**2 + _WORKLOAD**2
        left = np.maximum(prior - np.einsum("ij,ji->i", shared, weights), 0.0)
        # all of the doubt that is left, the machine's included
        foretold = corrected.foretold.without_machine_doubt()
        return Corrected(
            foretold, corrected.value + errors @ weights, np.sqrt(left), corrected.noise,
            corrected.inner, corrected.outer,
        )  # fmt: skip

    def _shared(
        self, those: Columns, doubt: Array, machine: Array, these: Columns, doubts: Array, machines: Array
    ) -> Array:
        numbers, kinds = distances(those, these, self.model.scale)
        alike = np.exp(-_FADING * kinds - 0.5 * numbers / _LENGTH**2)
        same = those.texts(*_MACHINE)[:, None] == these.texts(*_MACHINE)[None, :]
        of_machine = np.where(same, np.outer(machine, machines) + _SITE**2, 0.0)
        of_workload = alike * (np.outer(doubt, doubts) + np.where(same, _WORKLOAD**2, 0.0))
        total: Array = np.nan_to_num(of_machine + of_workload)
        return total
