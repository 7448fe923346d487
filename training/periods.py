"""What is looked at in a period: a few rates of a broker, each beside what the model says of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from training.model import TwinModel
from twin.calibration.predictor import by_system
from twin.core.columns import Columns, without_text
from twin.core.configuration import Configuration
from twin.core.fields import Row
from twin.core.prediction import THROUGHPUT

PROBES = 3
# fewer probes than this cannot outvote a wild one
FEWEST = 2
# a run whose own samples scatter more, as a standard deviation of the logarithm, cannot tell 30%
NOISIEST = 0.25
# Huber's bound, and how good it is beside a mean of normal errors; so many rounds settle a few numbers
_ROBUST = 1.345
_EFFICIENCY = 0.95
_ROUNDS = 20


class Probe(Row):
    """A measured rate beside the predicted one; nothing where the run failed or the model has no answer."""

    configuration_id: str
    measured: float | None
    predicted: float | None
    # of the logarithm of their ratio, by what the model knows of its doubt and of runs
    sd: float | None
    # of the logarithms of the run's own samples, where there are any
    scatter: float | None = None

    @property
    def flaw(self) -> str | None:
        """Why it does not count."""
        if not self.measured or self.measured <= 0:
            return "nothing was measured"
        if not self.predicted or not self.sd:
            return "the model has no answer"
        if self.scatter is not None and self.scatter > NOISIEST:
            return f"the run scatters by {self.scatter:.0%}"
        return None


class Period(Row):
    """`at` names it: a time, or a number."""

    at: str
    probes: tuple[Probe, ...]

    @property
    def left_out(self) -> str | None:
        """Why it does not count as a whole."""
        flaws = [flaw for probe in self.probes if (flaw := probe.flaw)]
        if len(self.probes) - len(flaws) >= FEWEST:
            return None
        return "; ".join(sorted(set(flaws))) or f"fewer than {FEWEST} probes"

    @property
    def centre(self) -> tuple[float, float]:
        """How far the probes lie off as a logarithm, one wild one among them not counting for much, and its
        standard deviation by what the model states (Huber's mean)."""
        told = [
            (math.log(one.measured / one.predicted), one.sd)
            for one in self.probes
            if one.flaw is None and one.measured and one.predicted and one.sd
        ]
        off, sds = np.array(told).T
        at = float(np.median(off))
        for _ in range(_ROUNDS):
            weights = _ROBUST / np.maximum(np.abs(off - at) / sds, _ROBUST) / sds**2
            at = float((weights * off).sum() / weights.sum())
        return at, float(1 / np.sqrt(_EFFICIENCY * (sds**-2.0).sum()))


def probed(
    model: TwinModel,
    configurations: Sequence[Configuration],
    rates: Sequence[float | None],
    scatters: Sequence[float | None] | None = None,
    doubted: bool = True,
) -> tuple[Probe, ...]:
    """Measured rates beside what a model says; None where a run failed. Probes that are the same in every
    period are not `doubted`: what the model has wrong about them is the same each time, and learned."""
    columns = Columns.of(configurations)
    values, sds = np.full(columns.size, np.nan), np.full(columns.size, np.nan)
    for system, rows in by_system(columns):
        said = model.corrected(system, columns.only(rows), THROUGHPUT)
        values[rows] = np.where(without_text(said.foretold.excuse), said.value, np.nan)
        doubt = said.doubt**2 + said.foretold.machine**2 if doubted else 0.0
        sds[rows] = np.sqrt(doubt + said.noise**2)
    return tuple(
        Probe(
            configuration_id=configuration.configuration_id,
            measured=rate,
            predicted=math.exp(value) if math.isfinite(value) else None,
            sd=sd if math.isfinite(value) else None,
            scatter=scatter,
        )
        for configuration, rate, value, sd, scatter in zip(
            configurations, rates, values.tolist(), sds.tolist(), scatters or [None] * len(rates), strict=True
        )
    )
