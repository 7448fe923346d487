"""A system at its fitted demands: values, their doubt, and what nobody has measured."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from twin.calibration.calibration import Calibration, noise_keys
from twin.calibration.physics import Physics
from twin.core.columns import Columns, Texts
from twin.queueing.network import Array
from twin.systems.model import Batch, System, Target
from twin.systems.transfer import Transfer

# A prior this wide is no knowledge: without a row that informs the parameter there is no answer.
_VAGUE = 0.7
# How many spreads of its prior an unknown demand is raised by to see whether it matters, even where a ceiling
# hides it now; and how far a prediction must move for that, as a logarithm or in percentage points.
_RAISED = 3.0
_MATTERS = {"relative": 0.1, "points": 10.0}


class Evaluated:
    """Some configurations of one system. Values and doubts are in the target's scale."""

    def __init__(self, system: System, calibration: Calibration, columns: Columns, moved: Transfer) -> None:
        self._system, self._calibration, self._moved = system, calibration, moved
        self._batch = Batch(columns, moved)
        self._physics = Physics(calibration.seen(system), self._batch)
        self._at = self._physics.at(calibration.logs)

    def values(self, target: Target) -> Array:
        return self._scaled(target, self._at.metrics)

    def doubt(self, target: Target) -> Array:
        """One standard deviation of the value itself, as far as the demands are not known."""
        values = self.values(target)
        drawn = self._scaled(target, self._drawn)
        # a metric that some draws do not have is told as far as the others go
        found: Array = np.sqrt(np.nanmean(np.where(np.isfinite(values), (drawn - values) ** 2, 0.0), axis=0))
        return found

    def machine_doubt(self, target: Target) -> Array:
        """The same of the move from the measured machine to this one."""
        # a share of a machine moves by so much of itself
        return self._moved.doubt * (np.abs(self.values(target)) if target.scale == "points" else 1.0)

    def noise(self, target: Target) -> Array:
        """One standard deviation of a run around the value."""
        keys = noise_keys(self._system, self._batch, target.metric)
        return np.array([self._calibration.noise.get(key, target.noise) for key in keys])

    def unmeasured(self, target: Target) -> Texts:
        """Per configuration the first demand it depends on that no row has informed."""
        found = np.full(self._batch.size, None, dtype=object)
        if not self._calibration.rows:
            # nothing of this system was ever measured: all is believed alike, and the doubt says so
            return found
        moved = np.abs(self._scaled(target, self._raised) - self.values(target)) > _MATTERS[target.scale]
        for parameter, matters in zip(self._unknown, moved, strict=True):
            for at in np.flatnonzero(matters):
                found[at] = (
                    found[at] or f"no measurement tells {self._calibration.demands[parameter].parameter}"
                )
        return found

    def bottlenecks(self) -> Texts:
        solution = self._at.solution
        if solution is None:
            return np.full(self._batch.size, None, dtype=object)
        return np.array(solution.bottleneck, dtype=object)

    def utilisations(self) -> Texts:
        """Busy share per station as a JSON object."""
        solution = self._at.solution
        if solution is None:
            return np.full(self._batch.size, None, dtype=object)
        names = [station.name for station in solution.network.stations if station.kind != "delay"]
        shape = "{{" + ", ".join(f'"{name}": {{:.4g}}' for name in names) + "}}"
        columns = solution.utilisation[solution.network.queueing].T.round(4).tolist()
        return np.array([shape.format(*column) for column in columns], dtype=object)

    def _scaled(self, target: Target, metrics: Mapping[str, Array]) -> Array:
        """A metric that follows from a solved network is not there where nothing runs."""
        return target.to_scale(metrics.get(target.metric, np.full(self._batch.size, np.nan)))

    @cached_property
    def _drawn(self) -> Mapping[str, Array]:
        """All metrics at some sets of demands that the rows leave possible."""
        return self._physics.at_each(self._calibration.draws)

    @cached_property
    def _unknown(self) -> list[int]:
        """Demands that nobody knows."""
        return [
            place
            for place, one in enumerate(self._calibration.demands)
            if not one.informed and one.prior_log_sd >= _VAGUE
        ]

    @cached_property
    def _raised(self) -> Mapping[str, Array]:
        """All metrics with each of those much larger, one after the other."""
        logs = np.tile(self._calibration.logs, (len(self._unknown), 1))
        for row, place in enumerate(self._unknown):
            logs[row, place] += _RAISED * self._calibration.demands[place].prior_log_sd
        return self._physics.at_each(logs) if self._unknown else {}
