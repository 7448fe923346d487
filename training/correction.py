"""What the rows add to the physics of one system and target: a correction, how far to trust it, and how much
of the regressor to mix in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from training.conformal import NORMAL, Reach
from training.kinds import CHOICES
from training.leaving_out import left_out
from training.residual import Residual
from twin.calibration.calibration import Calibration, row_noise
from twin.calibration.fitting import Fit
from twin.core.columns import Columns
from twin.core.prediction import THROUGHPUT
from twin.queueing.network import Array, Flags

# Weight goes to the regressor only where its errors on groups it has not seen are this much smaller, and by
# more than chance: so many standard errors of the difference over groups
_CLEAR_GAIN = 0.10
_STANDARD_ERRORS = 2.0
# so many groups would have to agree before half of the weight that fits best is believed
_HALF_BELIEVED = 10
_INNER_FOLDS = 5


@dataclass(frozen=True)
class Correction:
    residual: Residual | None
    # reach in standard deviations near a measured configuration of the same kind, and elsewhere
    known: Reach
    new: Reach
    regression_weight: float

    @classmethod
    def fit(
        cls, fit: Fit, calibration: Calibration, target: str, regression_errors: Mapping[str, float]
    ) -> Correction:
        """`regression_errors`: by configuration, of a regressor that had not seen its group."""
        observations = fit.observations
        sign = np.array([_sign(row.metric, target) for row in observations.rows])
        rows = np.flatnonzero(sign)
        if not len(rows):
            return NO_CORRECTION
        columns = Columns.of([observations.rows[int(at)].configuration for at in rows])
        noise = row_noise(observations, calibration)[rows]
        residual = Residual.fit(columns, (sign * fit.residuals)[rows], noise)
        own = noise if residual is None else noise * residual.noise_factor
        ids = [row.configuration.configuration_id for row in observations.rows]
        groups = np.array([f"{row.source_id}/{row.exam_group}" for row in observations.rows], dtype=object)
        kinds = Columns.of([row.configuration for row in observations.rows]).texts(*CHOICES)
        folds = np.array([_inner_fold(one) for one in ids])

        def reach(parts: np.ndarray[Any, Any], together: bool = True) -> tuple[Reach, Array]:
            errors, spreads = left_out(fit, rows, residual, sign[rows], own, parts)
            return Reach.of(errors / spreads, len(set(parts[rows])) if together else None), errors

        known, _ = reach(folds, together=False)
        (by_kind, _), (by_group, errors) = reach(kinds), reach(groups)
        learned = np.array([regression_errors.get(ids[at], np.nan) for at in rows])
        weight = _weight(-sign[rows] * errors, learned, groups[rows])
        return cls(residual, known, by_kind.at_least(by_group), weight)

    def at(self, columns: Columns) -> tuple[Array, Array, Flags]:
        """Logarithm to add, its variance, and whether the kind of each configuration was measured."""
        if self.residual is None:
            return np.zeros(columns.size), np.zeros(columns.size), np.zeros(columns.size, dtype=bool)
        return self.residual.at(columns)

    def expected(self, columns: Columns) -> Array:
        """The logarithm to add alone."""
        return np.zeros(columns.size) if self.residual is None else self.residual.expected(columns)

    @property
    def noise_factor(self) -> float:
        return 1.0 if self.residual is None else self.residual.noise_factor

    def reach(self, known: Flags) -> tuple[Array, Array]:
        """How many standard deviations the 50% and the 90% interval go to each side."""
        return (
            np.where(known, self.known.inner, self.new.inner),
            np.where(known, self.known.outer, self.new.outer),
        )

    def to_plain(self) -> dict[str, Any]:
        return {
            "residual": None if self.residual is None else self.residual.to_plain(),
            "known": [self.known.inner, self.known.outer],
            "new": [self.new.inner, self.new.outer],
            "regression_weight": self.regression_weight,
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Correction:
        residual = plain["residual"]
        return cls(
            None if residual is None else Residual.from_plain(residual),
            Reach(*plain["known"]),
            Reach(*plain["new"]),
            plain["regression_weight"],
        )


def _inner_fold(configuration_id: str) -> int:
    return int(hashlib.sha256(f"inner {configuration_id}".encode()).hexdigest(), 16) % _INNER_FOLDS


NO_CORRECTION = Correction(None, NORMAL, NORMAL, 0.0)


def _sign(metric: str, target: str) -> int:
    """How a printed figure tells of a target: a time is the reciprocal of a rate."""
    if metric == target:
        return 1
    return -1 if (metric, target) == ("elapsed_ms", THROUGHPUT) else 0


def _weight(hybrid: Array, regression: Array, groups: np.ndarray[Any, Any]) -> float:
    """How much of the regressor to mix in; nothing without a clear gain."""
    both = np.isfinite(hybrid) & np.isfinite(regression)
    if not both.any():
        return 0.0
    hybrid, regression, groups = hybrid[both], regression[both], groups[both]
    labels = sorted(set(groups))
    gains = np.array(
        [np.abs(hybrid[groups == one]).mean() - np.abs(regression[groups == one]).mean() for one in labels]
    )
    if len(labels) < 2 or gains.mean() < _CLEAR_GAIN * np.abs(hybrid).mean():
        return 0.0
    if gains.mean() < _STANDARD_ERRORS * gains.std(ddof=1) / np.sqrt(len(labels)):
        return 0.0
    apart = hybrid - regression
    best = float(np.clip(hybrid @ apart / (apart @ apart), 0.0, 1.0))
    return best * len(labels) / (len(labels) + _HALF_BELIEVED)
