"""What physics leaves over: a Gaussian process on the logarithm of measured over predicted.

Two parts, both fading as configurations differ in kind: an offset that all sizes and counts of a kind share,
and a part that fades with the distance between numbers. Far from every row both are silent and physics is
left alone. How strong they are is decided by the rows themselves (marginal likelihood, with weak priors);
they come out near nothing where physics leaves noise only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from training.kinds import Scale, distances
from twin.core.columns import Columns
from twin.queueing.network import Array, Flags

# logarithms of: offset, local part, fading per differing column, length of the local part in spreads of the
# training rows, noise as a multiple of what the physics was fitted with; and how sure that is beforehand
PRIOR = np.log([0.02, 0.03, 1.0, 1.0, 1.0])
PRIOR_SPREAD = np.array([1.0, 1.0, 0.5, 0.7, 0.5])
# a row this many standard deviations off counts for less: a misprint must not bend its neighbours
_GROSS = 3.0
_FEWEST_ROWS = 10
# Rows that decide how strong the parts are: five numbers need no more, and each try costs the cube of them.
# All rows take part in the correction itself.
_ENOUGH_ROWS = 1_000
# configurations that are compared with the rows together where only values are asked for
_TOGETHER = 1_000
# in spreads of the training rows: a neighbour in the same table, not in one of another message size
_NEAR = 0.75


@dataclass(frozen=True)
class Residual:
    """Of one system and target."""

    scale: Scale
    rows: Columns
    parameters: Array
    # noise of each row, and what its residual contributes to a prediction
    noise: Array
    weights: Array
    # inverse of the rows' covariance, for the doubt of a prediction
    precision: Array

    @classmethod
    def fit(
        cls, rows: Columns, residuals: Array, noise: Array, parameters: Array | None = None
    ) -> Residual | None:
        """None where there are too few rows to tell anything. `parameters` fixes what is else decided
        here."""
        if rows.size < _FEWEST_ROWS:
            return None
        scale = Scale.of(rows)
        numbers, kinds = distances(rows, rows, scale)
        if parameters is None:
            usual = _GROSS * np.maximum(noise, 1.4826 * np.median(np.abs(residuals)))
            some = np.linspace(0, rows.size - 1, min(rows.size, _ENOUGH_ROWS)).astype(int)
            among = np.ix_(some, some)
            parameters = _likeliest(
                np.clip(residuals, -usual, usual)[some], noise[some], numbers[among], kinds[among]
            )
        own: Array = noise * np.exp(parameters[4])
        own = own * np.maximum(1.0, np.abs(residuals) / (_GROSS * np.sqrt(own**2 + _variance(parameters))))
        covariance = _kernel(numbers, kinds, parameters) + np.diag(own**2)
        precision = _inverse(covariance)
        return cls(scale, rows, parameters, own, precision @ residuals, precision)

    @property
    def noise_factor(self) -> float:
        """Noise of a run, as a multiple of what lies around the physics alone."""
        return float(np.exp(self.parameters[4]))

    def covariance(self) -> Array:
        """Of the rows among themselves, without noise."""
        return _kernel(*distances(self.rows, self.rows, self.scale), self.parameters)

    def expected(self, columns: Columns) -> Array:
        """The logarithm of measured over predicted alone, as many configurations at a time as fit into the
        caches."""
        found = np.empty(columns.size)
        for start in range(0, columns.size, _TOGETHER):
            part = np.arange(start, min(start + _TOGETHER, columns.size))
            apart = distances(columns.only(part), self.rows, self.scale)
            found[part] = _kernel(*apart, self.parameters) @ self.weights
        return found

    def at(self, columns: Columns) -> tuple[Array, Array, Flags]:
        """Expected logarithm of measured over predicted, its variance, and whether a row of the same kind is
        near."""
        numbers, kinds = distances(columns, self.rows, self.scale)
        shared = _kernel(numbers, kinds, self.parameters)
        known = np.einsum("ij,ij->i", shared @ self.precision, shared)
        variance = np.maximum(_variance(self.parameters) - known, 0.0)
        near = np.where(kinds == 0, numbers, np.inf).min(axis=1) <= _NEAR**2
        return shared @ self.weights, variance, near

    def to_plain(self) -> dict[str, Any]:
        return {
            "scale": self.scale.to_plain(),
            "rows": self.scale.plain_rows(self.rows),
            "parameters": self.parameters.tolist(),
            "noise": self.noise.tolist(),
            "weights": self.weights.tolist(),
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Residual:
        scale = Scale.from_plain(plain["scale"])
        rows = Columns.from_mapping(len(plain["noise"]), plain["rows"])
        parameters, noise = np.array(plain["parameters"]), np.array(plain["noise"])
        covariance = _kernel(*distances(rows, rows, scale), parameters) + np.diag(noise**2)
        return cls(scale, rows, parameters, noise, np.array(plain["weights"]), _inverse(covariance))


def _inverse(covariance: Array) -> Array:
    inverse: Array = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
    return inverse


def _variance(parameters: Array) -> float:
    return float(np.exp(2 * parameters[0]) + np.exp(2 * parameters[1]))


def _kernel(numbers: Array, kinds: Array, parameters: Array) -> Array:
    offset, local, fading, length = np.exp(parameters[:4])
    found: Array = np.exp(-fading * kinds) * (offset**2 + local**2 * np.exp(-0.5 * numbers / length**2))
    return found


def _likeliest(residuals: Array, noise: Array, numbers: Array, kinds: Array) -> Array:
    def cost(parameters: Array) -> tuple[float, Array]:
        """Negative logarithm of the posterior, and its gradient."""
        offset, local, fading, length, factor = np.exp(parameters)
        faded = np.exp(-fading * kinds)
        near = faded * np.exp(-0.5 * numbers / length**2)
        kernel = offset**2 * faded + local**2 * near
        run = (factor * noise) ** 2
        factored = cho_factor(kernel + np.diag(run), lower=True, overwrite_a=True)
        weighted = cho_solve(factored, residuals)
        inverse = cho_solve(factored, np.eye(len(residuals)), overwrite_b=True)
        off = (parameters - PRIOR) / PRIOR_SPREAD
        value = 0.5 * residuals @ weighted + np.log(np.diag(factored[0])).sum() + 0.5 * off @ off
        # d/dp = 1/2 tr((inverse - w w') dK/dp)
        inverse -= np.outer(weighted, weighted)
        slopes = (
            2 * offset**2 * np.vdot(inverse, faded),
            2 * local**2 * np.vdot(inverse, near),
            -fading * np.vdot(inverse, kinds * kernel),
            local**2 / length**2 * np.vdot(inverse, near * numbers),
            2 * np.diag(inverse) @ run,
        )
        return float(value), 0.5 * np.array(slopes) + off / PRIOR_SPREAD

    found = minimize(
        cost, PRIOR, jac=True, method="L-BFGS-B", bounds=[(p - 3, p + 3) for p in PRIOR],
        options={"maxiter": 40, "ftol": 1e-6},
    )  # fmt: skip
    likeliest: Array = found.x
    return likeliest
