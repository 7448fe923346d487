"""Demands from measurements: the most probable parameters, given the rows and what was believed before.

Errors are compared in the target's own scale: logarithms, or percentage points. A row far off counts
linearly, not quadratically, so that a misprint does not bend the fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from twin.calibration.observations import Observations, Places
from twin.calibration.physics import Physics, demands_of
from twin.queueing.network import Array, Flags
from twin.systems.model import Demands, System, Target

# Huber's bound in standard deviations of a run: 95% as good as least squares where errors are normal
_ROBUST = 1.345
# relative step of the numerical derivatives: far above the solver's rounding, far below any curvature
_STEP = 1e-5
# how many spreads of its prior a parameter is moved to see whether it takes part at all
_FAR = 5.0
# The rows are first taken as so many times noisier than they are: ceilings and plateaus make valleys that a
# sharp fit from the priors does not leave
_BLURS = (10.0, 3.0, 1.0)
# and stay so where most of them lie this many times farther off than runs do: what the physics does not know
# is no sharper than that, and taken for noise of runs it would make nearly every row an outlier
_COARSE = 2.0
# relative change of the cost and of the parameters that is no progress any more
_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Fit:
    """Parameters as logarithms, their covariance, and what they say about the rows."""

    observations: Observations
    logs: Array
    covariance: Array
    predicted: Array
    # of each row, in its target's scale: what was measured less what was predicted, and how far that is
    # expected to be
    residuals: Array
    noise: Array
    # derivative of each row's prediction by each parameter, in the same scale
    sensitivity: Array
    # how much of a row counts: less than one where it lies too far off to be noise
    weight: Array
    # share of a row's own value in its prediction; their sum is the effective number of parameters
    leverage: Array

    @property
    def demands(self) -> Demands:
        return demands_of(self.observations.system, self.logs)


def fit(observations: Observations, start: Array | None = None) -> Fit:
    """The most probable demands. `start`, the logarithms of a fit on nearly the same rows, saves the way
    there."""
    observations = observations.with_effects()
    system = observations.system
    physics = Physics(system, observations.batch(observations.reference))
    prior = np.log([one.prior for one in system.parameters])
    spread = np.array([one.spread for one in system.parameters])
    noise = np.array([np.hypot(_target(system, row.metric).noise, row.noise) for row in observations.rows])
    measured = _per_metric(observations, lambda target, rows: target.to_scale(observations.values[rows]))

    def predicted(logs: Array) -> Array:
        """A row for each set of demands, a column for each figure."""
        metrics = physics.at_each(logs)
        return _per_metric(
            observations,
            lambda target, rows: target.to_scale(metrics[target.metric][:, observations.places[rows]]),
            len(logs),
        )

    def residuals(scaled: Array, blur: float) -> Array:
        off = predicted((prior + scaled * spread)[None])[0] - measured
        return np.concatenate([off / (noise * blur), scaled])

    rows = len(measured)

    def loss(squares: Array) -> Array:
        """Huber's for the rows, plain squares for the priors."""
        rho = np.stack([squares, np.ones_like(squares), np.zeros_like(squares)])
        far = np.flatnonzero(squares[:rows] > _ROBUST**2)
        root = np.sqrt(squares[far])
        rho[0, far] = 2 * _ROBUST * root - _ROBUST**2
        rho[1, far] = _ROBUST / root
        rho[2, far] = -_ROBUST / (2 * root**3)
        return rho

    depends = _depends(predicted, prior, _FAR * spread)
    groups = _moved_together(depends)

    def slopes(scaled: Array, blur: float) -> Array:
        _, by_log = _derivatives(predicted, prior + scaled * spread, depends, groups)
        return np.concatenate([by_log * spread / (noise * blur)[:, None], np.eye(len(prior))])

    scaled = np.zeros(len(prior)) if start is None else (start - prior) / spread
    # only a sharp fit shows whether the physics is coarse: a blurred one keeps to the priors
    blurs = list(_BLURS if start is None else _BLURS[-1:])
    for blur in blurs:
        scaled = least_squares(
            residuals, scaled, jac=slopes, loss=loss, args=(blur,),
            ftol=_TOLERANCE, xtol=_TOLERANCE, max_nfev=200,
        ).x  # fmt: skip
        scaled = _centred(system, scaled, spread, depends)
        scatter = 1.4826 * float(np.median(np.abs(residuals(scaled, 1.0)[:rows])))
        if blur == _BLURS[-1] and scatter > _COARSE:
            blurs.append(scatter)
    noise = noise * blur
    logs = prior + scaled * spread
    said, by_log = _derivatives(predicted, logs, depends, groups)
    off = (said - measured) / noise
    jacobian = by_log / noise[:, None]
    weight = np.minimum(1.0, _ROBUST / np.maximum(np.abs(off), 1e-12))
    precision = jacobian.T @ (jacobian * weight[:, None]) + np.diag(spread**-2.0)
    covariance: Array = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    leverage = weight * np.einsum("rp,pq,rq->r", jacobian, covariance, jacobian)
    return Fit(observations, logs, covariance, said, measured - said, noise, by_log, weight, leverage)


def _centred(system: System, scaled: Array, spread: Array, depends: Flags) -> Array:
    """The same predictions, more probable: by what all labels of an effect differ from 1 alike, the demands
    that it multiplies differ from what was believed. A search among many rows does not see that far."""
    names, seen = [one.name for one in system.parameters], depends.any(axis=0)
    shifts = []
    for effect in system.effects:
        of = np.array([name in effect.of or name.partition("[")[0] in effect.of for name in names]) & seen
        labels = np.array([name.startswith(f"{effect.name}[") for name in names]) & seen
        if labels.sum() > 1:
            shifts.append((labels.astype(float) - of) / spread)
    if not shifts:
        return scaled
    along: Array = np.stack(shifts, axis=1)
    return scaled - along @ np.linalg.lstsq(along, scaled)[0]


def _depends(predicted: Callable[[Array], Array], logs: Array, far: Array) -> Flags:
    """Which rows depend on which parameters, even where a ceiling hides them at the priors."""
    steps = np.diag(far)
    at, more, less = predicted(logs[None]), predicted(logs + steps), predicted(logs - steps)
    depends: Flags = ((more != at) | (less != at)).T
    return depends


def _moved_together(depends: Flags) -> list[list[int]]:
    """Parameters that no row has in common can be moved at once: their effects do not mix."""
    groups: list[tuple[Flags, list[int]]] = []
    for place in np.argsort(-depends.sum(axis=0), kind="stable").tolist():
        rows = depends[:, place]
        if not rows.any():
            continue
        group = next((one for one in groups if not (one[0] & rows).any()), None)
        if group is None:
            groups.append((rows.copy(), [place]))
        else:
            group[0][:] |= rows
            group[1].append(place)
    return [places for _, places in groups]


def _derivatives(
    predicted: Callable[[Array], Array], logs: Array, depends: Flags, groups: list[list[int]]
) -> tuple[Array, Array]:
    """What is predicted, and its derivatives by each parameter."""
    moved = np.tile(logs, (len(groups) + 1, 1))
    for step, places in zip(moved[1:], groups, strict=True):
        step[places] += _STEP
    at, *nudged = predicted(moved)
    slopes = np.zeros(depends.shape)
    for found, places in zip(nudged, groups, strict=True):
        slopes[:, places] = depends[:, places] * ((found - at) / _STEP)[:, None]
    return at, slopes


def _per_metric(
    observations: Observations, value: Callable[[Target, Places], Array], sets: int | None = None
) -> Array:
    result = np.empty(len(observations.rows) if sets is None else (sets, len(observations.rows)))
    metrics = np.array([row.metric for row in observations.rows])
    for target in observations.system.targets:
        rows = np.flatnonzero(metrics == target.metric)
        if len(rows):
            result[..., rows] = value(target, rows)
    return result


def _target(system: System, metric: str) -> Target:
    target = system.target(metric)
    if target is None:
        raise KeyError(f"{system.name} does not explain {metric}")
    return target
