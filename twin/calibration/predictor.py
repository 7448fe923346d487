"""The analytic predictor: physics with fitted demands, behind the Predictor protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from twin.calibration.calibration import Calibration, believed
from twin.calibration.domain import Domain, outside, too_far
from twin.calibration.evaluating import Evaluated
from twin.calibration.physics import Physics, demands_of
from twin.core.columns import Codes, Columns, Texts, without_text
from twin.core.configuration import Configuration
from twin.core.prediction import THROUGHPUT, Answers, Excuse, Prediction
from twin.queueing.network import Array, BadNetwork
from twin.systems.model import Batch, Demands, System, Target
from twin.systems.registry import BY_FAMILY
from twin.systems.transfer import Transfer, transfer

PREDICTOR = "analytic"
_INNER, _OUTER = NormalDist().inv_cdf(0.75), NormalDist().inv_cdf(0.95)
_STEP = 0.01
_NEVER_MEASURED = "nothing of this system was ever measured: its demands are judged"


@dataclass(frozen=True)
class Foretold:
    """What the physics says of one metric of one system's configurations: the value in the target's scale;
    one standard deviation each of the demands, of the move between machines, and of a run; or an excuse."""

    target: Target | None
    value: Array
    doubt: Array
    machine: Array
    noise: Array
    bottleneck: Texts
    utilisation: Texts
    domain_reason: Texts
    excuse: Texts

    @classmethod
    def none(cls, size: int, target: Target | None, excuse: Texts | str | None) -> Foretold:
        numbers = [np.full(size, np.nan) for _ in range(4)]
        texts = [np.full(size, None, dtype=object) for _ in range(4)]
        texts[-1][:] = excuse
        return cls(target, *numbers, *texts)

    @property
    def spread(self) -> Array:
        total: Array = np.sqrt(self.doubt**2 + self.machine**2 + self.noise**2)
        return total

    def without_machine_doubt(self) -> Foretold:
        return replace(self, machine=np.zeros_like(self.machine))

    def put(self, rows: Codes, part: Foretold) -> None:
        for field in fields(self)[1:]:
            getattr(self, field.name)[rows] = getattr(part, field.name)


class AnalyticPredictor:
    def __init__(self, calibrations: Mapping[str, Calibration], table_version: int = 0) -> None:
        self._calibrations = calibrations
        self.table_version = table_version

    def predict(
        self, configurations: Sequence[Configuration], target: str = THROUGHPUT
    ) -> list[Prediction | Excuse]:
        return self.answer(Columns.of(configurations), target).typed()

    def metrics(self, configuration: Configuration) -> dict[str, Prediction | Excuse]:
        """All that the system of a configuration can tell."""
        system = BY_FAMILY[str(configuration.workload.family)]
        return {one.metric: self.predict([configuration], one.metric)[0] for one in system.told}

    def answer(self, columns: Columns, target: str) -> Answers:
        answers = Answers.none(columns.size, PREDICTOR, target, self.table_version)
        for system, rows in by_system(columns):
            foretold = self.foretell(system, columns.only(rows), target)
            answers.put(rows, self.with_intervals(system, foretold, target))
        return answers

    def calibration(self, system: System) -> Calibration:
        return self._calibrations.get(system.name) or believed(system)

    def elasticities(self, system: System, columns: Columns, metric: str) -> dict[str, float]:
        """By how many percent the metric of the first configuration moves when a demand grows by one."""
        target, calibration = system.target(metric), self.calibration(system)
        if target is None or not calibration.demands:
            return {}
        physics = Physics(calibration.seen(system), Batch(columns, _moved(system, columns, calibration)))
        steps = np.vstack([np.zeros(len(calibration.demands)), _STEP * np.eye(len(calibration.demands))])
        at, *moved = target.to_scale(physics.at_each(calibration.logs + steps)[metric])[:, 0]
        slopes = (np.array(moved) - at) / _STEP
        return {one.parameter: float(slope) for one, slope in zip(calibration.demands, slopes, strict=True)}

    def fitted(self, system: System, columns: Columns) -> tuple[Batch, Demands]:
        """Configurations of one system with the demands that its physics has for them."""
        calibration = self.calibration(system)
        moved = _moved(system, columns, calibration)
        return Batch(columns, moved), demands_of(calibration.seen(system), calibration.logs)

    def foretell(self, system: System, columns: Columns, metric: str, doubts: bool = True) -> Foretold:
        """Of configurations of one system. Without doubts, one evaluation for whoever searches, values have
        no spread, and nobody asks whether all that they depend on was measured."""
        target = system.target(metric)
        if target is None:
            return Foretold.none(columns.size, None, f"the model of {system.name} does not tell {metric}")
        calibration = self.calibration(system)
        moved = _moved(system, columns, calibration)
        excuses = np.array(system.excuses(Batch(columns)), dtype=object)
        for further in (moved.excuses, _by_family(columns, calibration, _too_far(system))):
            excuses = np.where(without_text(excuses), further, excuses)
        foretold = Foretold.none(columns.size, target, excuses)
        covered = np.flatnonzero(without_text(excuses))
        if len(covered):
            only = columns.only(covered), moved.only(covered)
            foretold.put(covered, self._evaluated(system, calibration, *only, target, doubts))
        return foretold

    def limits(self, columns: Columns) -> Texts:
        """What limits each of some configurations, where their system can say."""
        found = np.full(columns.size, None, dtype=object)
        for system, rows in by_system(columns):
            foretold = self.foretell(system, columns.only(rows), THROUGHPUT, doubts=False)
            found[rows] = foretold.bottleneck
        return found

    def _evaluated(
        self,
        system: System,
        calibration: Calibration,
        columns: Columns,
        moved: Transfer,
        target: Target,
        doubts: bool,
    ) -> Foretold:
        try:
            evaluated = Evaluated(system, calibration, columns, moved)
        except BadNetwork as error:
            if columns.size == 1:
                return Foretold.none(1, target, str(error))
            # one impossible network must not take the answers of the others with it
            foretold = Foretold.none(columns.size, target, None)
            for rows in np.array_split(np.arange(columns.size), 2):
                only = columns.only(rows), moved.only(rows)
                foretold.put(rows, self._evaluated(system, calibration, *only, target, doubts))
            return foretold
        value = evaluated.values(target)
        doubt = evaluated.doubt(target) if doubts else np.zeros_like(value)
        unmeasured = evaluated.unmeasured(target) if doubts else np.full(columns.size, None, dtype=object)
        known = np.isfinite(value) & np.isfinite(doubt)
        inapplicable = f"{target.metric} does not apply to this configuration"
        reasons = _by_family(columns, calibration, outside)
        if calibration.rows:
            _tell_unseen(system, columns, calibration, reasons)
        elif system.parameters:
            reasons[:] = _NEVER_MEASURED
        return Foretold(
            target=target,
            value=value,
            doubt=doubt,
            machine=evaluated.machine_doubt(target),
            noise=evaluated.noise(target),
            bottleneck=evaluated.bottlenecks(),
            utilisation=evaluated.utilisations(),
            domain_reason=reasons,
            excuse=np.where(known, unmeasured, inapplicable),
        )

    def with_intervals(
        self, system: System, foretold: Foretold, metric: str, predictor: str = PREDICTOR
    ) -> Answers:
        answers = answers_from(
            foretold, foretold.value, _INNER * foretold.spread, _OUTER * foretold.spread,
            predictor=predictor, target=metric, table_version=self.table_version,
        )  # fmt: skip
        answered = without_text(foretold.excuse)
        answers.model_version[answered] = self.calibration(system).fitted_on
        return answers


def answers_from(foretold: Foretold, value: Array, inner: Array, outer: Array, **whole: Any) -> Answers:
    """Values in the target's scale, and how far from them the 50% and the 90% interval end."""
    answers = Answers.none(len(value), excuse=foretold.excuse, **whole)
    rows = np.flatnonzero(without_text(foretold.excuse))
    target = foretold.target
    if target is None or not len(rows):
        return answers
    ends = {
        "value": value,
        "lo50": value - inner,
        "hi50": value + inner,
        "lo90": value - outer,
        "hi90": value + outer,
    }
    for name, numbers in ends.items():
        getattr(answers, name)[rows] = target.from_scale(numbers[rows])
    for name in ("bottleneck", "utilisation", "domain_reason"):
        getattr(answers, name)[rows] = getattr(foretold, name)[rows]
    return answers


def by_system(columns: Columns) -> list[tuple[System, Codes]]:
    """Which configurations belong to which system."""
    families, _ = columns.labels("family")
    systems = {BY_FAMILY[family].name: BY_FAMILY[family] for family in families}
    return [
        (system, rows)
        for system in systems.values()
        if len(rows := np.flatnonzero(columns.is_("family", *system.families)))
    ]


def _moved(system: System, columns: Columns, calibration: Calibration) -> Transfer:
    if calibration.reference is None:
        return Transfer.none(columns.size)
    moved = transfer(columns, calibration.reference)
    for effect in system.effects:
        if effect.between_machines:
            moved = moved.measured(calibration.has_rows_of(effect, columns))
    return moved


def _tell_unseen(system: System, columns: Columns, calibration: Calibration, reasons: Texts) -> None:
    """Products and machines that no row has, beside what else lies outside."""
    for effect in {one.columns: one for one in system.effects}.values():
        labels = columns.texts(*effect.columns)
        for at in np.flatnonzero(~calibration.has_rows_of(effect, columns)):
            said = f"{'/'.join(effect.columns)} = {labels[at]} (no row has it)"
            reasons[at] = said if reasons[at] is None else f"{reasons[at]}; {said}"


_Compared = Callable[[Columns, Domain], Texts]


def _too_far(system: System) -> _Compared:
    return lambda columns, domain: too_far(columns, domain, system.reach)


def _by_family(columns: Columns, calibration: Calibration, told: _Compared) -> Texts:
    """What a comparison with the measured rows of its own family says of each configuration."""
    found = np.full(columns.size, None, dtype=object)
    for family in columns.labels("family")[0]:
        rows = np.flatnonzero(columns.is_("family", family))
        if family in calibration.domain and len(rows):
            found[rows] = told(columns.only(rows), calibration.domain[family])
    return found
