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
from twin.queueing.network import Array
from twin.systems.model import Batch, Demands, System, Target

# Huber's bound in standard deviations of a run: 95% as good as least squares where errors are normal
_ROBUST = 1.345
# relative step of the numerical derivatives: far above the solver's rounding, far below any curvature
_STEP = 1e-5
# how many spreads of its prior a parameter is moved to see whether it takes part at all
_FAR = 5.0
# relative change of the cost and of the parameters that is no progress any more
_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Fit:
    """Parameters as logarithms, their covariance, and what they say about the rows."""

    observations: Observations
    logs: Array
    covariance: Array
    predicted: Array
    # of each row, in its target's scale: what was measured less what was predicted
    residuals: Array
    # derivative of each row's prediction by each parameter, in the same scale
    sensitivity: Array
    # share of a row's own value in its prediction; their sum is the effective number of parameters
    leverage: Array

    @property
    def demands(self) -> Demands:
        return demands_of(self.observations.system, self.logs)


def demands_of(system: System, logs: Array) -> Demands:
    return Demands(dict(zip((one.name for one in system.parameters), np.exp(logs).tolist(), strict=True)))


def fit(observations: Observations) -> Fit:
    system = observations.system
    batch = Batch(observations.configurations)
    prior = np.log([one.prior for one in system.parameters])
    spread = np.array([one.spread for one in system.parameters])
    noise = np.array([_target(system, row.metric).noise for row in observations.rows])
    measured = _per_metric(observations, lambda target, rows: target.to_scale(observations.values[rows]))

    def predicted(logs: Array) -> Array:
        metrics = system.evaluate(batch, demands_of(system, logs)).metrics
        return _per_metric(
            observations,
            lambda target, rows: target.to_scale(metrics[target.metric][observations.places[rows]]),
        )

    def residuals(scaled: Array) -> Array:
        return np.concatenate([(predicted(prior + scaled * spread) - measured) / noise, scaled])

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

    used = _used(predicted, prior, _FAR * spread)

    def slopes(scaled: Array) -> Array:
        by_log = _derivatives(predicted, prior + scaled * spread, used)
        return np.concatenate([by_log * spread / noise[:, None], np.eye(len(prior))])

    found = least_squares(
        residuals, np.zeros(len(prior)), jac=slopes, loss=loss, ftol=_TOLERANCE, xtol=_TOLERANCE, max_nfev=200
    )
    logs = prior + found.x * spread
    said = predicted(logs)
    scaled = (said - measured) / noise
    jacobian = _derivatives(predicted, logs, used) / noise[:, None]
    weight = np.minimum(1.0, _ROBUST / np.maximum(np.abs(scaled), 1e-12))
    precision = jacobian.T @ (jacobian * weight[:, None]) + np.diag(spread**-2.0)
    covariance = np.linalg.inv(precision)
    leverage = weight * np.einsum("rp,pq,rq->r", jacobian, covariance, jacobian)
    return Fit(observations, logs, covariance, said, measured - said, jacobian * noise[:, None], leverage)


def _used(predicted: Callable[[Array], Array], logs: Array, far: Array) -> Places:
    """Parameters that some row depends on, even where a ceiling hides them: the others need no derivative."""
    at = predicted(logs)
    return np.flatnonzero([bool((predicted(logs + change) != at).any()) for change in np.diag(far)])


def _derivatives(predicted: Callable[[Array], Array], logs: Array, used: Places) -> Array:
    at = predicted(logs)
    slopes = np.zeros((len(at), len(logs)))
    for place in used:
        moved = logs.copy()
        moved[place] += _STEP
        slopes[:, place] = (predicted(moved) - at) / _STEP
    return slopes


def _per_metric(observations: Observations, value: Callable[[Target, Places], Array]) -> Array:
    result = np.empty(len(observations.rows))
    metrics = np.array([row.metric for row in observations.rows])
    for target in observations.system.targets:
        rows = np.flatnonzero(metrics == target.metric)
        if len(rows):
            result[rows] = value(target, rows)
    return result


def _target(system: System, metric: str) -> Target:
    target = system.target(metric)
    if target is None:
        raise KeyError(f"{system.name} does not explain {metric}")
    return target
