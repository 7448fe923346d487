"""How well a fit explains its rows, by report, family and metric."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated

import numpy as np

from twin.calibration.fitting import Fit
from twin.calibration.observations import Observation
from twin.core.fields import Row, quantity
from twin.systems.model import Batch

# fewer rows than this are joined by a curve, not explained by one
INTERPOLATION = 6


class FamilyScore(Row):
    """Errors of one metric over the rows of a family, or of a part of it."""

    source_id: Annotated[str, quantity("The report")]
    family: Annotated[str, quantity("Experiment family")]
    regime: Annotated[str, quantity("Part of the family")] | None = None
    metric: Annotated[str, quantity("What was measured")]
    n: Annotated[int, quantity("Rows", ge=1)]
    parameters: Annotated[int, quantity("Parameters that matter to these rows", ge=0)]
    effective_parameters: Annotated[float, quantity("Parameters after shrinkage", ge=0)]
    mape: Annotated[float, quantity("Mean error", unit="%")] | None
    median_ape: Annotated[float, quantity("Median error", unit="%")] | None
    mean_abs_points: Annotated[float, quantity("Mean error of a percentage", unit="points")] | None

    @property
    def interpolation(self) -> bool:
        return self.n < INTERPOLATION


def family_scores(fit: Fit) -> list[FamilyScore]:
    return list(_scores(fit, lambda row: (row.source_id, row.family, None, row.metric)))


def regime_scores(fit: Fit) -> list[FamilyScore]:
    system, observations = fit.observations.system, fit.observations
    if system.regimes is None:
        return []
    found = system.regimes(Batch(observations.configurations))
    regimes = {one.configuration_id: str(found[at]) for at, one in enumerate(observations.configurations)}
    return list(
        _scores(
            fit,
            lambda row: (
                row.source_id, row.family, regimes[row.configuration.configuration_id], row.metric,
            ),
        )
    )  # fmt: skip


def _scores(
    fit: Fit, key: Callable[[Observation], tuple[str, str, str | None, str]]
) -> Iterator[FamilyScore]:
    rows = fit.observations.rows
    keys = [key(row) for row in rows]
    for one in sorted(set(keys), key=str):
        of_key = np.array([at for at, other in enumerate(keys) if other == one])
        source_id, family, regime, metric = one
        target = fit.observations.system.target(metric)
        points = target is not None and target.scale == "points"
        errors = np.abs(fit.residuals[of_key]) if points else np.abs(np.expm1(-fit.residuals[of_key])) * 100
        yield FamilyScore(
            source_id=source_id,
            family=family,
            regime=regime,
            metric=metric,
            n=len(of_key),
            parameters=int((np.abs(fit.sensitivity[of_key]) > 1e-6).any(axis=0).sum()),
            effective_parameters=float(fit.leverage[of_key].sum()),
            mape=None if points else float(errors.mean()),
            median_ape=None if points else float(np.median(errors)),
            mean_abs_points=float(errors.mean()) if points else None,
        )
