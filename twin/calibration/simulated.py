"""The simulated predictor: physics with fitted demands, played out instead of computed.

Where the formula is exact both say the same. Where it approximates, its answer is moved by what the simulator
finds the rate or the response time to be instead. The doubt about the demands stays what it was; that of the
simulation comes to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from twin.calibration.predictor import AnalyticPredictor, Foretold, by_system
from twin.core.columns import Columns, without_text
from twin.core.configuration import Configuration
from twin.core.fields import fields_of
from twin.core.prediction import THROUGHPUT, Answers, Excuse, Prediction
from twin.queueing.network import BadNetwork
from twin.queueing.solving import Solution
from twin.simulation.playing import model_of
from twin.simulation.running import Estimate, Unstable, estimate, simulate
from twin.simulation.transient import Scenario, Transient
from twin.systems.model import Batch, Demands, System
from twin.systems.registry import BY_FAMILY

PREDICTOR = "simulated"
# of each configuration: a few hundredths of a second
_RUNS, _MESSAGES = 4, 5_000
_OF_TRANSIENTS = ("channel_recovery_s", "throughput_recovery_s")
_TRANSIENTS = 3


class SimulatedPredictor:
    def __init__(self, analytic: AnalyticPredictor) -> None:
        self._analytic = analytic

    def predict(
        self, configurations: Sequence[Configuration], target: str = THROUGHPUT
    ) -> list[Prediction | Excuse]:
        return self.answer(Columns.of(configurations), target).typed()

    def answer(self, columns: Columns, target: str) -> Answers:
        answers = Answers.none(columns.size, PREDICTOR, target, self._analytic.table_version)
        for system, rows in by_system(columns):
            part = columns.only(rows)
            foretold = self._played(system, part, self._analytic.foretell(system, part, target))
            answers.put(rows, self._analytic.with_intervals(system, foretold, target, PREDICTOR))
        return answers

    def _played(self, system: System, columns: Columns, formula: Foretold) -> Foretold:
        """The formula's answers, moved to what the simulator finds."""
        if formula.target is None:
            return formula
        moved = replace(
            formula, value=formula.value.copy(), doubt=formula.doubt.copy(), excuse=formula.excuse.copy()
        )
        if formula.target.metric in _OF_TRANSIENTS:
            found = self._recoveries(system, columns, formula.target.metric)
        else:
            found = self._steady_states(system, columns, formula)
        for row, one in found.items():
            if isinstance(one, str):
                moved.excuse[row] = one
            elif formula.excuse[row] is not None:
                moved.excuse[row] = f"on an edge: {one.value:.4g} if simulated, never by the formula"
            else:
                relative = formula.target.scale == "relative"
                moved.value[row] = formula.target.to_scale(np.array([one.value]))[0]
                error = one.half_width / 2 / (one.value if relative else 1.0)
                moved.doubt[row] = np.hypot(formula.doubt[row], error)
        return moved

    def _steady_states(
        self, system: System, columns: Columns, formula: Foretold
    ) -> dict[int, Estimate | str]:
        """By row, where the formula has an answer; or why there is nothing to simulate."""
        rows = np.flatnonzero(without_text(formula.excuse))
        if formula.target is None or not len(rows):
            return {}
        batch, demands = self._analytic.fitted(system, columns.only(rows))
        solution = system.evaluate(batch, demands).solution
        said = formula.target.from_scale(formula.value[rows])
        found: dict[int, Estimate | str] = {}
        for at, row in enumerate(rows.tolist()):
            try:
                found[row] = _steady(solution, at, batch, formula.target.metric, float(said[at]))
            except BadNetwork as error:
                found[row] = str(error)
        return found

    def _recoveries(self, system: System, columns: Columns, metric: str) -> dict[int, Estimate | str]:
        """By row, where the demands are known; or why it never recovers."""
        known = without_text(self._analytic.foretell(system, columns, THROUGHPUT).excuse)
        found: dict[int, Estimate | str] = {}
        for row in np.flatnonzero(known).tolist():
            try:
                found[row] = self._recovery(system, columns.only(np.array([row])), metric)
            except BadNetwork as error:
                found[row] = str(error)
        return found

    def _recovery(self, system: System, columns: Columns, metric: str) -> Estimate:
        told = columns.row(0, [field.name for field in fields_of(Configuration)])
        configuration = Configuration.from_flat(
            {name: value for name, value in told.items() if value is not None}
        )

        times = []
        for seed in range(1, _TRANSIENTS + 1):
            transient = transient_of(self._analytic, system, configuration, Scenario(seed))
            time = transient.metrics.get(metric)
            if time is None:
                raise BadNetwork(transient.verdict)
            times.append(time)
        return estimate(times)


def transient_of(
    analytic: AnalyticPredictor, system: System, configuration: Configuration, scenario: Scenario
) -> Transient:
    """What happens to a configuration when something of its system fails, with the demands as fitted."""
    if system.transient is None:
        families = [family for family, one in BY_FAMILY.items() if one.transient is not None]
        raise BadNetwork(f"nothing fails in a {configuration.workload.family}: only in {', '.join(families)}")

    def fitted(some: Sequence[Configuration]) -> tuple[Batch, Demands]:
        return analytic.fitted(system, Columns.of(some))

    return system.transient(configuration, fitted, scenario)


def _steady(solution: Solution | None, at: int, batch: Batch, metric: str, formula: float) -> Estimate:
    """At the offered rate where that can be sustained, else at its own pace, as the formula does it."""
    if solution is None:
        raise BadNetwork("nothing of it queues: there is nothing to simulate")
    rate, response = float(solution.throughput[at]), float(solution.response[at])
    if metric == "cpu_ms_per_msg":
        # an input of the simulation, and not a result
        return Estimate(formula, 0.0)
    offered = float(batch.number("offered_rate_msgs_per_s")[at])
    held = np.isfinite(offered) and not solution.saturated[at]
    found = simulate(
        model_of(solution.network, at, offered if held else None), runs=_RUNS, messages=_MESSAGES
    )
    if isinstance(found, Unstable):
        if metric != "throughput_msgs_per_s":
            raise BadNetwork(f"the backlog grows by {found.growth:.3g} messages a second")
        return Estimate(formula * found.served / rate, 0.0)
    if metric == "throughput_msgs_per_s":
        return found.throughput.times(formula / rate)
    if metric == "response_ms":
        return found.response.times(formula / response)
    if metric == "cpu_busy_pct":
        return found.throughput.times(formula / rate)
    if metric == "cpu_idle_pct":
        busy = found.throughput.times((100 - formula) / rate)
        return Estimate(max(100 - busy.value, 0.0), busy.half_width)
    raise BadNetwork(f"the simulator does not tell {metric}")
