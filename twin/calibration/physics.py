"""A system's metrics over some configurations, for many sets of demands at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from twin.queueing.network import Array, Quantity
from twin.systems.model import Batch, Demands, Evaluation, System

# configurations times sets of demands that are evaluated together: enough to forget the cost of a call,
# little enough for the caches
_TOGETHER = 20_000


def demands_of(system: System, logs: Array) -> Demands:
    return Demands(dict(zip((one.name for one in system.parameters), np.exp(logs).tolist(), strict=True)))


class Physics:
    def __init__(self, system: System, batch: Batch) -> None:
        self.system, self.batch = system, batch
        self._repeated: dict[int, Batch] = {1: batch}

    def at(self, logs: Array) -> Evaluation:
        """At one set of demands, given by their logarithms."""
        return self.system.evaluate(self.batch, demands_of(self.system, logs))

    def at_each(self, logs: Array) -> Mapping[str, Array]:
        """At several sets, a row each: every metric has a row per set and a column per configuration."""
        step = max(_TOGETHER // max(self.batch.size, 1), 1)
        parts = [self._together(logs[at : at + step]) for at in range(0, len(logs), step)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _together(self, logs: Array) -> Mapping[str, Array]:
        sets, size = len(logs), self.batch.size
        if sets not in self._repeated:
            self._repeated[sets] = self.batch.repeated(sets)
        values: dict[str, Quantity] = {}
        for parameter, column in zip(self.system.parameters, np.exp(logs).T, strict=True):
            # one number for all is cheaper than the same number many times
            same = bool((column == column[0]).all())
            values[parameter.name] = float(column[0]) if same else np.repeat(column, size)
        metrics = self.system.evaluate(self._repeated[sets], Demands(values)).metrics
        return {
            name: np.broadcast_to(found, sets * size).reshape(sets, size) for name, found in metrics.items()
        }
