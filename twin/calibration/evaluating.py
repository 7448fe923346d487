"""A system at its fitted demands: values, their doubt, and what nobody has measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from twin.calibration.calibration import Calibration, noise_key
from twin.calibration.fitting import demands_of
from twin.core.configuration import Configuration
from twin.queueing.network import Array
from twin.systems.model import Batch, Evaluation, System, Target
from twin.systems.transfer import Transfer

# A prior this wide is no knowledge: without a row that informs the parameter there is no answer.
_VAGUE = 0.7
# How many spreads of its prior an unknown demand is raised by to see whether it matters, even where a ceiling
# hides it now; and how far a prediction must move for that, as a logarithm or in percentage points.
_RAISED = 2.0
_MATTERS = {"relative": 0.1, "points": 10.0}
_STEP = 1e-4


class Evaluated:
    """Some configurations of one system. Values and spreads are in the target's scale."""

    def __init__(
        self,
        system: System,
        calibration: Calibration,
        configurations: Sequence[Configuration],
        moved: Transfer,
    ) -> None:
        self._system, self._calibration, self._doubt = system, calibration, moved.doubt
        self._batch = Batch(configurations, moved)
        self._at = self._evaluation(calibration.logs)

    def values(self, target: Target) -> Array:
        return self._scaled(target, self._at.metrics)

    def spread(self, target: Target) -> Array:
        """One standard deviation: of the demands, a run around the fit, and the move between machines."""
        values = self.values(target)
        slopes = np.zeros((len(self._nudged), len(values)))
        for row, metrics in zip(slopes, self._nudged, strict=True):
            row[:] = (self._scaled(target, metrics) - values) / _STEP
        covariance = np.array(self._calibration.covariance).reshape(len(slopes), len(slopes))
        fitted = np.einsum("pn,pq,qn->n", slopes, covariance, slopes)
        keys = [noise_key(self._system, one, target.metric) for one in self._batch.configurations]
        run = np.array([self._calibration.noise.get(key, target.noise) for key in keys])
        # a share of a machine moves by so much of itself
        machine = self._doubt * (np.abs(values) if target.scale == "points" else 1.0)
        total: Array = np.sqrt(np.maximum(fitted, 0) + run**2 + machine**2)
        return total

    def unmeasured(self, target: Target) -> list[str | None]:
        """Per configuration the first demand it depends on that no row has informed."""
        found: list[str | None] = [None] * self._batch.size
        for parameter, metrics in self._raised.items():
            moved = np.abs(self._scaled(target, metrics) - self.values(target))
            for at in np.flatnonzero(moved > _MATTERS[target.scale]):
                found[at] = found[at] or f"no measurement tells {parameter}"
        return found

    def bottlenecks(self) -> Sequence[str | None]:
        solution = self._at.solution
        return [None] * self._batch.size if solution is None else solution.bottleneck

    def utilisations(self) -> list[str | None]:
        """Busy share per station as a JSON object."""
        solution = self._at.solution
        if solution is None:
            return [None] * self._batch.size
        names = [station.name for station in solution.network.stations if station.kind != "delay"]
        columns = solution.utilisation[solution.network.queueing].T
        return [
            json.dumps({name: round(float(busy), 4) for name, busy in zip(names, column, strict=True)})
            for column in columns
        ]

    def _scaled(self, target: Target, metrics: Mapping[str, Array]) -> Array:
        """A metric that follows from a solved network is not there where nothing runs."""
        return target.to_scale(metrics.get(target.metric, np.full(self._batch.size, np.nan)))

    @cached_property
    def _nudged(self) -> list[Mapping[str, Array]]:
        """All metrics with each demand a little larger, one after the other."""
        return [self._with(place, _STEP) for place in range(len(self._calibration.demands))]

    @cached_property
    def _raised(self) -> dict[str, Mapping[str, Array]]:
        """All metrics with each demand that nobody knows much larger."""
        return {
            one.parameter: self._with(place, _RAISED * one.prior_log_sd)
            for place, one in enumerate(self._calibration.demands)
            if not one.informed and one.prior_log_sd >= _VAGUE
        }

    def _with(self, place: int, more: float) -> Mapping[str, Array]:
        logs = self._calibration.logs
        logs[place] += more
        return self._evaluation(logs).metrics

    def _evaluation(self, logs: Array) -> Evaluation:
        return self._system.evaluate(self._batch, demands_of(self._system, logs))
