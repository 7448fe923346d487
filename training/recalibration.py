"""A broker has changed: its demands again, from the few probes measured since.

The champion's demands are what was believed before, with the doubt of a change of unknown kind
(`loosening.py`); probes move them, all else stays, the corrections too. The newest period takes no part: it
shows whether what was learned from the others holds. The model that was looked at is the one that is handed
on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from training.model import TwinModel
from training.periods import Period, Probe, probed
from training.refitting import Refit, Told, refitted
from twin.calibration.observations import Observation
from twin.core.columns import Columns
from twin.core.prediction import THROUGHPUT
from twin.systems.model import MACHINE, System
from twin.systems.registry import BY_FAMILY

# two periods of three probes: fewer cannot tell which demand has changed
FEWEST = 6
# A refit that is right leaves the centre of its probes within so many of its own standard deviations 99 times
# in 100, and most probes within one of a run, told by a median whose own error is 1.17 by the root of their
# number: three of those, or twice the noise of a run where they are many
_CENTRE = 2.5
_MOST = 2.0
_OF_FEW = 3 * 1.17
# from a median of absolute errors to a standard deviation
_OF_MEDIAN = 1.4826
# what no demand changes by without somebody knowing why
FARTHEST = 4.0
_OUTER = NormalDist().inv_cdf(0.95)

Policy = Literal["person", "auto"]


@dataclass(frozen=True)
class Refused:
    reason: str


@dataclass(frozen=True)
class Change:
    """What a demand is now, as a multiple of what it was."""

    parameter: str
    what: str
    factor: float
    lo90: float
    hi90: float

    @property
    def is_clear(self) -> bool:
        return not self.lo90 <= 1 <= self.hi90

    def __str__(self) -> str:
        return f"{self.what} {self.factor:.2f} times ({self.lo90:.2f} to {self.hi90:.2f})"


@dataclass(frozen=True)
class Errors:
    """Of a model on some probes: the median, and in standard deviations their centre and most of them."""

    probes: int
    median_percent: float
    centre: float
    most: float

    @property
    def within_noise(self) -> bool:
        most = max(_MOST, 1 + _OF_FEW / self.probes**0.5)
        return abs(self.centre) <= _CENTRE and self.most <= most


@dataclass(frozen=True)
class Recalibration:
    model: TwinModel
    system: str
    broker: str
    rows: int
    changes: tuple[Change, ...]
    before: Errors
    after: Errors
    newest_before: Errors
    newest_after: Errors

    def __str__(self) -> str:
        clear = [str(one) for one in self.changes if one.is_clear] or ["no demand has clearly moved"]
        return (
            f"{self.broker}: {'; '.join(clear)}. Median error {self.before.median_percent:.1f}% -> "
            f"{self.after.median_percent:.1f}% on {self.after.probes} probes, "
            f"{self.newest_before.median_percent:.1f}% -> {self.newest_after.median_percent:.1f}% on the "
            f"{self.newest_after.probes} of the newest period, which it had not seen"
        )


def approve(recalibration: Recalibration, policy: Policy) -> tuple[bool, str]:
    """Whether to promote, and why."""
    if policy == "person":
        return False, f"for a person to judge: {recalibration}"
    for one in recalibration.changes:
        if not 1 / FARTHEST <= one.factor <= FARTHEST:
            return False, f"{one}: more than {FARTHEST:g} times is for a person to judge"
    before, after = recalibration.newest_before, recalibration.newest_after
    if not after.within_noise:
        return False, (
            f"the newest probes, which it had not seen, are off by {after.median_percent:.1f}%, more than "
            f"noise; {before.median_percent:.1f}% before"
        )
    if recalibration.after.median_percent >= recalibration.before.median_percent:
        return False, f"the probes were no farther off before: {recalibration}"
    return True, str(recalibration)


def recalibrated(
    model: TwinModel, periods: Sequence[Sequence[Observation]], noise_factor: float = 1.0
) -> Recalibration | Refused:
    """From figures of one broker, period by period since the change, the newest last. `noise_factor`: how
    many times as noisy as the model states runs are, where that is known to be more than one."""
    rows = [row for period in periods for row in period]
    if reason := _unsuitable(model, rows):
        return Refused(reason)
    system, noise_factor = BY_FAMILY[rows[0].family], max(noise_factor, 1.0)
    used, newest = (
        Told.of(model, system, [row for period in some for row in period], noise_factor)
        for some in (periods[:-1], periods[-1:])
    )
    if len(used.rates) < FEWEST or not newest.rates:
        return Refused(
            f"{len(used.rates)} rates to learn from and {len(newest.rates)} of a newer period to look at: "
            f"{FEWEST} and 1 are the fewest"
        )
    refit = refitted(model, system, used)
    after = replace(
        model,
        calibrations=model.calibrations | {system.name: refit.calibration},
        version="unregistered",
    )
    before_after = [
        _errors(one, told, noise_factor, learned=told is used)
        for told in (used, newest)
        for one in (model, after)
    ]
    found = Recalibration(
        after, system.name, _broker(rows[0]), len(used.rows), _changes(system, refit), *before_after
    )
    if not found.after.within_noise:
        return Refused(
            f"no change of its demands explains the probes: {found.after.median_percent:.1f}% off, "
            f"{found.before.median_percent:.1f}% before"
        )
    return found


def _unsuitable(model: TwinModel, rows: Sequence[Observation]) -> str | None:
    if not any(row.metric == THROUGHPUT for row in rows):
        return "nothing was measured since"
    brokers = sorted({_broker(row) for row in rows})
    systems = {row.family: BY_FAMILY[row.family] for row in rows}
    if len(brokers) > 1 or len({system.name for system in systems.values()}) > 1:
        return f"figures of more than one broker or system: {', '.join(brokers)}"
    (system, *_) = systems.values()
    calibration = model.calibrations.get(system.name)
    columns = Columns.of([row.configuration for row in rows])
    if calibration is None or not all(calibration.has_rows_of(one, columns).all() for one in system.effects):
        return f"{brokers[0]} was never fitted: train on its figures first"
    return None


def _broker(row: Observation) -> str:
    return str(Columns.of([row.configuration]).texts("product", *MACHINE)[0])


def _errors(model: TwinModel, told: Told, noise_factor: float, learned: bool) -> Errors:
    """Of rates that were learned from, noise alone is left; of others what the model does not know, too."""
    probes = [
        one.model_copy(update={"sd": noise if learned else one.sd * noise_factor})
        for one, (_, noise) in zip(_probes(model, told), told.rates, strict=True)
        if one.sd and one.flaw is None
    ]
    centre, sd = Period(at="", probes=tuple(probes)).centre
    ratios = np.array([one.measured / one.predicted for one in probes if one.measured and one.predicted])
    off = np.abs(np.log(ratios)) / np.array([one.sd for one in probes])
    percent = 100 * float(np.median(np.abs(1 / ratios - 1)))
    return Errors(len(probes), percent, centre / sd, float(np.median(off)) * _OF_MEDIAN)


def _probes(model: TwinModel, told: Told) -> tuple[Probe, ...]:
    rows = [row for row, _ in told.rates]
    return probed(model, [row.configuration for row in rows], [row.value for row in rows])


def _changes(system: System, refit: Refit) -> tuple[Change, ...]:
    """The surest first."""
    sds = np.sqrt(np.diag(refit.covariance) + np.diag(refit.free.known))
    order = np.argsort(-np.abs(refit.moved) / sds, kind="stable")
    names = [refit.calibration.demands[at].parameter for at in refit.free.places]
    return tuple(
        Change(
            parameter=names[at],
            what=_what(system, names[at]),
            factor=float(np.exp(refit.moved[at])),
            lo90=float(np.exp(refit.moved[at] - _OUTER * sds[at])),
            hi90=float(np.exp(refit.moved[at] + _OUTER * sds[at])),
        )
        for at in order.tolist()
    )


def _what(system: System, parameter: str) -> str:
    """A product's factor is told as what it multiplies."""
    name, _, label = parameter.partition("[")
    of = next((effect.of for effect in system.effects if effect.name == name), None)
    return parameter if of is None else f"{' and '.join(of)} of {label.removesuffix(']')}"
