"""What a fit leaves behind: demands with their doubt and origin, from which a predictor is made."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache, cached_property

import numpy as np
from pydantic import Field as ModelField

from twin.calibration.domain import Domain, domain_of
from twin.calibration.fitting import Fit
from twin.calibration.observations import Observations
from twin.core.columns import Columns, Flags, Texts
from twin.core.configuration import Platform
from twin.core.fields import Row
from twin.core.fitted import FittedDemand
from twin.core.settings import PROJECT
from twin.queueing.network import Array
from twin.systems.model import Batch, Effect, Parameter, System

# the spread over so many draws is known to a sixth of itself
_DRAWS = 16
_SEED = 7
_NO_ROWS = "no rows"


class Calibration(Row):
    """One system, fitted."""

    system: str
    # identifies the figures and the physics
    fitted_on: str
    rows: int
    demands: tuple[FittedDemand, ...]
    # of the logarithms of the demands, in their order
    covariance: tuple[tuple[float, ...], ...]
    # standard deviation of a row around the fit, by `noise_keys`
    noise: dict[str, float]
    # by family: what was measured
    domain: dict[str, Domain] = ModelField(default_factory=dict)
    # the machine that the demands hold for
    reference: Platform | None

    @cached_property
    def logs(self) -> Array:
        return np.log([one.fitted_value for one in self.demands])

    def seen(self, system: System) -> System:
        """The system with the parameters that were fitted, those of single products and machines too."""
        if not system.effects:
            return system
        return replace(
            system,
            parameters=tuple(
                Parameter(one.parameter, one.demand_unit, one.prior, one.prior_log_sd, one.prior_source)
                for one in self.demands
            ),
        )

    def has_rows_of(self, effect: Effect, columns: Columns) -> Flags:
        """Per configuration whether its label has a factor of its own."""
        known = {one.parameter for one in self.demands}
        labels, codes = columns.labels(*effect.columns)
        found: Flags = np.array([effect.parameter(label).name in known for label in labels], bool)[codes]
        return found

    @cached_property
    def draws(self) -> Array:
        """Logarithms of demands that the rows leave possible, always the same ones: a row per set."""
        size = len(self.demands)
        spread = np.linalg.cholesky(np.array(self.covariance).reshape(size, size))
        chance = np.random.default_rng(_SEED).standard_normal((_DRAWS, size))
        drawn: Array = self.logs + chance @ spread.T
        return drawn


def fitted_on(observations: Observations) -> str:
    """The same figures and the same physics give the same fit."""
    return hashlib.sha256((observations.digest + _physics_digest()).encode()).hexdigest()[:16]


@cache
def _physics_digest() -> str:
    digest = hashlib.sha256()
    for package in ("queueing", "systems", "calibration"):
        for path in sorted((PROJECT / "twin" / package).rglob("*")):
            if path.suffix in (".py", ".yaml"):
                digest.update(path.read_bytes())
    return digest.hexdigest()


def calibration_of(fit: Fit) -> Calibration:
    """Its demands hold for the machine that most rows were measured on."""
    observations = fit.observations
    system = observations.system
    sd = np.sqrt(np.diag(fit.covariance))
    digest = fitted_on(observations)
    # A demand is informed when some row would show it if it were e times as large. Its own doubt may be
    # great all the same: where two demands only occur together the rows tell their sum.
    runs = np.array([target.noise for row in observations.rows if (target := system.target(row.metric))])
    noticed = np.any(np.abs(fit.sensitivity) > runs[:, None], axis=0).tolist()
    demands = tuple(
        FittedDemand(
            system=system.name,
            parameter=parameter.name,
            demand_unit=parameter.unit,
            fitted_value=float(np.exp(log)),
            log_sd=float(doubt),
            prior=parameter.prior,
            prior_log_sd=parameter.spread,
            prior_source=parameter.source,
            informed=bool(told),
            fitted_on=digest,
        )
        for parameter, log, doubt, told in zip(system.parameters, fit.logs, sd, noticed, strict=True)
    )
    return Calibration(
        system=system.name,
        fitted_on=digest,
        rows=len(observations.rows),
        demands=demands,
        covariance=tuple(tuple(row) for row in fit.covariance.tolist()),
        noise=_noise(fit),
        domain={
            family: domain_of([one for one in observations.configurations if one.workload.family == family])
            for family in sorted({row.family for row in observations.rows})
        },
        reference=observations.reference,
    )


def residuals_of(fit: Fit, calibration: Calibration) -> list[tuple[str, float, float]]:
    """Per figure: its id, what the physics says, and how many standard deviations the figure is off."""
    observations = fit.observations
    found = []
    for row, key, said, residual, leverage in zip(
        observations.rows, _row_keys(observations), fit.predicted, fit.residuals, fit.leverage, strict=True
    ):
        target = observations.system.target(row.metric)
        noise = calibration.noise[key]
        # a row that has drawn the fit to itself lies nearer to it than a new one would
        own = np.sqrt(max(1 - leverage, 0.0)) or 1.0
        value = said if target is not None and target.scale == "points" else np.exp(said)
        found.append((row.figure_id, float(value), float(residual / (noise * own))))
    return found


def believed(system: System) -> Calibration:
    """Of a system that no row tells of: what was believed before, with all its doubt. A system without
    parameters has nothing to fit: its configurations state their demands."""
    demands = tuple(
        FittedDemand(
            system=system.name,
            parameter=one.name,
            demand_unit=one.unit,
            fitted_value=one.prior,
            log_sd=one.spread,
            prior=one.prior,
            prior_log_sd=one.spread,
            prior_source=one.source,
            informed=False,
            fitted_on=_NO_ROWS,
        )
        for one in system.parameters
    )
    spreads = np.array([one.spread for one in system.parameters])
    return Calibration(
        system=system.name,
        fitted_on=_NO_ROWS,
        rows=0,
        demands=demands,
        covariance=tuple(tuple(row) for row in np.diag(spreads**2).tolist()),
        noise={},
        reference=None,
    )


def noise_keys(system: System, batch: Batch, metric: str) -> Texts:
    """Parts of a family scatter differently around the fit."""
    regimes = "" if system.regimes is None else system.regimes(batch)
    keys: Texts = batch.columns.texts("family") + "/" + regimes + f"/{metric}"
    return keys


def row_noise(observations: Observations, calibration: Calibration) -> Array:
    """Of each figure, around what the physics says."""
    return np.array([calibration.noise[key] for key in _row_keys(observations)])


def _row_keys(observations: Observations) -> list[str]:
    batch = Batch(observations.configurations)
    metrics = {row.metric for row in observations.rows}
    keys = {metric: noise_keys(observations.system, batch, metric) for metric in metrics}
    return [
        keys[row.metric][place] for row, place in zip(observations.rows, observations.places, strict=True)
    ]


def _noise(fit: Fit) -> dict[str, float]:
    """Standard deviation of a row around the fit; never less than what two runs differ by."""
    system = fit.observations.system
    places: dict[str, list[int]] = {}
    for place, key in enumerate(_row_keys(fit.observations)):
        places.setdefault(key, []).append(place)
    found = {}
    for key, at in places.items():
        target = system.target(fit.observations.rows[at[0]].metric)
        assert target is not None
        left = len(at) - fit.leverage[at].sum()
        off = np.abs(fit.residuals[at])
        # an outlier counts as the farthest row that is none
        limit = 3 * max(1.4826 * float(np.median(off)), target.noise)
        scatter = float(np.sqrt((np.minimum(off, limit) ** 2).sum() / left)) if left >= 1 else 0.0
        found[key] = max(target.noise, scatter)
    return found
