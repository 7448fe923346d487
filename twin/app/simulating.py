"""A configuration simulated: its steady state beside the formula's, or what happens when something fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from twin.calibration.predictor import AnalyticPredictor
from twin.calibration.simulated import transient_of
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.prediction import THROUGHPUT
from twin.queueing.solving import Solution, solve
from twin.simulation.playing import model_of
from twin.simulation.running import MOST_MESSAGES, Estimate, Progress, Simulated, Unstable, simulate
from twin.simulation.transient import Scenario, Transient
from twin.systems.model import System
from twin.systems.registry import BY_FAMILY

_MESSAGES = 50_000
# a queue forgets where it started after some 1 / (1 - load)² messages; a run should be many times as long
_FORGOTTEN = 200
_LONG = 2_000_000


class NotSimulated(Exception):
    """Why a configuration cannot be simulated."""


@dataclass(frozen=True)
class Steady:
    """One configuration by the formula and by the simulator, at its own pace where no rate is offered."""

    offered: float | None
    formula: Solution
    found: Simulated | Unstable

    @property
    def gaps(self) -> dict[str, float]:
        """By how many percent the simulator is above the formula."""
        if isinstance(self.found, Unstable):
            return {}
        pairs = {
            "throughput_msgs_per_s": (self.found.throughput.value, self.formula.throughput[0]),
            "response_ms": (self.found.response.value, self.formula.response[0]),
        }
        return {name: 100 * (ours / theirs - 1) for name, (ours, theirs) in pairs.items()}

    def told(self) -> dict[str, Any]:
        formula = {
            "throughput_msgs_per_s": float(self.formula.throughput[0]),
            "response_ms": _finite(float(self.formula.response[0]) * 1000),
            "capacity_msgs_per_s": float(self.formula.capacity[0]),
            "bottleneck": self.formula.bottleneck[0],
        }
        said: dict[str, Any] = {"offered_rate_msgs_per_s": self.offered, "formula": formula}
        if isinstance(self.found, Unstable):
            unstable = {"served_msgs_per_s": self.found.served, "growth_msgs_per_s": self.found.growth}
            return said | {"unstable": unstable}
        return said | {
            "simulated": {
                "throughput_msgs_per_s": _interval(self.found.throughput),
                "response_ms": _interval(self.found.response.times(1000)),
                **{
                    f"response_p{share}_ms": _interval(value.times(1000))
                    for share, value in self.found.percentiles.items()
                },
                "utilisation": {
                    name: _interval(value) for name, value in self.found.utilisation.items()
                },
            },
            "gap_pct": self.gaps,
            "runs": self.found.runs,
            "messages_per_run": self.found.messages,
            "warm_up_share": self.found.warm_up,
            "settled": self.found.settled,
        }  # fmt: skip


def simulated_steadily(
    predictor: AnalyticPredictor,
    configuration: Configuration,
    *,
    seed: int,
    runs: int,
    messages: int | None,
    variation: float,
    progress: Progress | None = None,
) -> Steady:
    system = _system(predictor, configuration)
    batch, demands = predictor.fitted(system, Columns.of([configuration]))
    solution = system.evaluate(batch, demands).solution
    if solution is None:
        raise NotSimulated(
            f"the model of {system.name} has no queues for this configuration: nothing to simulate"
        )
    offered = float(batch.number("offered_rate_msgs_per_s")[0])
    told = offered if np.isfinite(offered) else None
    model = model_of(solution.network, 0, told, variation)
    length = messages or _run_length(solution, told)
    found = simulate(model, seed=seed, runs=runs, messages=length, progress=progress)
    return Steady(told, solution, found)


def simulated_transient(
    predictor: AnalyticPredictor, configuration: Configuration, scenario: Scenario
) -> Transient:
    return transient_of(predictor, _system(predictor, configuration), configuration, scenario)


def _system(predictor: AnalyticPredictor, configuration: Configuration) -> System:
    """What the formula has an excuse for the simulator has too: its demands are not known."""
    system = BY_FAMILY[str(configuration.workload.family)]
    excuse = predictor.foretell(system, Columns.of([configuration]), THROUGHPUT).excuse[0]
    if excuse is not None:
        raise NotSimulated(str(excuse))
    return system


def _run_length(solution: Solution, offered: float | None) -> int:
    if offered is None or solution.saturated[0]:
        return _MESSAGES
    # all customers together may be busy before any station is
    most = min(float(solution.capacity[0]), float(solve(solution.network).throughput[0]))
    load = min(offered / most, 1 - 1e-6)
    return int(np.clip(_FORGOTTEN / (1 - load) ** 2, _MESSAGES, min(_LONG, MOST_MESSAGES)))


def _interval(one: Estimate) -> dict[str, float | None]:
    return {"value": _finite(one.value), "lo95": _finite(one.low), "hi95": _finite(one.high)}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
