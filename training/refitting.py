"""Demands of one broker moved by a few new figures: the most probable ones, given the figures and what was
known before. The whole covariance takes part: two demands that were only known together are so again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from training.loosening import Loose, loose
from training.model import TwinModel
from twin.calibration.calibration import Calibration
from twin.calibration.observations import Observation, Observations
from twin.calibration.physics import Physics
from twin.core.columns import Columns, without_text
from twin.core.prediction import THROUGHPUT
from twin.queueing.network import Array, Flags
from twin.systems.model import System

# Huber's bound in standard deviations, of a figure and of a change: a large one is rare, not absurd
_ROBUST = 1.345
# a nudge in standard deviations of what is known before, for derivatives
_STEP = 1e-4
# the figures are first taken as so many times noisier: ceilings make valleys that a sharp fit does not leave
_BLURS = (5.0, 1.0)


@dataclass(frozen=True)
class Told:
    """Figures in the scale of their targets: the noise of a run; what the physics should say for the model
    with its correction to say what was measured, and the noise of that."""

    rows: tuple[Observation, ...]
    runs: Array
    needed: Array
    noise: Array

    @classmethod
    def of(cls, model: TwinModel, system: System, rows: Sequence[Observation], noise_factor: float) -> Told:
        """Without those that the model has no answer for."""
        covered = Observations.of(system, rows).rows
        runs, needed, noise = np.full((3, len(covered)), np.nan)
        for metric in sorted({row.metric for row in covered}):
            places = [at for at, row in enumerate(covered) if row.metric == metric]
            said = model.corrected(system, Columns.of([covered[at].configuration for at in places]), metric)
            target, correction = said.foretold.target, model.corrections.get((system.name, metric))
            assert target is not None
            # what is mixed in of the regressor does not move with the physics
            own = 1.0 - (0.0 if correction is None else correction.regression_weight)
            measured = target.to_scale(np.array([covered[at].value for at in places]))
            off = np.where(without_text(said.foretold.excuse), (measured - said.value) / own, np.nan)
            runs[places], needed[places] = said.noise * noise_factor, said.foretold.value + off
            noise[places] = runs[places] / own
        told = np.flatnonzero(np.isfinite(needed)).tolist()
        return cls(tuple(covered[at] for at in told), runs[told], needed[told], noise[told])

    @property
    def rates(self) -> list[tuple[Observation, float]]:
        """With the noise of each."""
        pairs = zip(self.rows, self.runs.tolist(), strict=True)
        return [(row, noise) for row, noise in pairs if row.metric == THROUGHPUT]


@dataclass(frozen=True)
class Refit:
    """Demands that were free to move: by what logarithm they did, and its doubt, all else given."""

    calibration: Calibration
    free: Loose
    moved: Array
    covariance: Array


def refitted(model: TwinModel, system: System, told: Told) -> Refit:
    before = model.calibrations[system.name]
    columns = Columns.of([row.configuration for row in told.rows])
    free = loose(system, before, columns)
    batch, _ = model.physics.fitted(system, columns)
    physics = Physics(before.seen(system), batch)
    root = np.linalg.cholesky(free.known + free.change)

    def predicted(scaled: Array) -> Array:
        """A row for each set of demands, a column for each figure."""
        logs = np.tile(before.logs, (len(scaled), 1))
        logs[:, free.places] += scaled @ root.T
        metrics = physics.at_each(logs)
        found = np.empty((len(scaled), len(told.rows)))
        for target in system.targets:
            places = [at for at, row in enumerate(told.rows) if row.metric == target.metric]
            if places:
                found[:, places] = target.to_scale(metrics[target.metric][:, places])
        return found

    def residuals(scaled: Array, blur: float) -> Array:
        return np.concatenate([(predicted(scaled[None])[0] - told.needed) / (told.noise * blur), scaled])

    def slopes(scaled: Array, blur: float) -> Array:
        at, *nudged = predicted(scaled + np.vstack([np.zeros_like(scaled), _STEP * np.eye(len(scaled))]))
        by_one = (np.array(nudged) - at).T / _STEP
        return np.concatenate([by_one / (told.noise * blur)[:, None], np.eye(len(scaled))])

    scaled = np.zeros(len(free.places))
    for blur in _BLURS:
        scaled = least_squares(
            residuals, scaled, jac=slopes, loss="huber", f_scale=_ROBUST, args=(blur,), max_nfev=200
        ).x
    off, by_one = residuals(scaled, 1.0)[: len(told.rows)], slopes(scaled, 1.0)[: len(told.rows)]
    weight = _ROBUST / np.maximum(np.abs(off), _ROBUST)
    precision = by_one.T @ (by_one * weight[:, None]) + np.eye(len(scaled))
    covariance = root @ np.linalg.inv(precision) @ root.T
    # a demand is informed when some figure would show it if it were e times as large
    noticed: Flags = np.any(np.abs(np.linalg.solve(root.T, by_one.T)) > 1.0, axis=1)
    after = _calibration(before, free, root @ scaled, covariance, noticed, told)
    return Refit(after, free, root @ scaled, covariance)


def _calibration(
    before: Calibration, free: Loose, moved: Array, covariance: Array, noticed: Flags, told: Told
) -> Calibration:
    """All that was known of the others, and of how the free ones go along with them, stays."""
    size = len(before.demands)
    whole = np.array(before.covariance).reshape(size, size)
    others = whole[np.ix_(free.others, free.others)]
    whole[np.ix_(free.places, free.others)] = free.along @ others
    whole[np.ix_(free.others, free.places)] = others @ free.along.T
    whole[np.ix_(free.places, free.places)] = covariance + free.along @ others @ free.along.T
    digest = hashlib.sha256(before.fitted_on.encode())
    for row, needed in zip(told.rows, told.needed.tolist(), strict=True):
        digest.update(
            f"{row.figure_id}|{row.configuration.configuration_id}|{row.metric}|{needed!r}".encode()
        )
    fitted_on = digest.hexdigest()[:16]
    by_place = dict(
        zip(free.places.tolist(), zip(moved.tolist(), noticed.tolist(), strict=True), strict=True)
    )
    demands = []
    for place, one in enumerate(before.demands):
        by, seen = by_place.get(place, (0.0, False))
        update = {
            "fitted_value": one.fitted_value * float(np.exp(by)),
            "log_sd": float(np.sqrt(whole[place, place])),
            "informed": one.informed or seen,
            "fitted_on": fitted_on,
        }
        demands.append(one.model_copy(update=update))
    # model_copy would keep what was worked out of the old demands
    return Calibration(
        system=before.system,
        fitted_on=fitted_on,
        rows=before.rows + len(told.rows),
        demands=tuple(demands),
        covariance=tuple(tuple(row) for row in whole.tolist()),
        noise=before.noise,
        domain=before.domain,
        reference=before.reference,
    )
