"""What the model would say of rows that it had not been given, without fitting it again.

Around a fit everything is linear and normal: a row is what physics says at the believed demands, plus what
the demands differ from that, plus what physics leaves over, plus noise. Conditioning such a model on all rows
but some is algebra on one matrix. It stands in for hundreds of nested refits; the exam itself always refits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from training.residual import Residual
from twin.calibration.fitting import Fit
from twin.core.columns import Codes
from twin.queueing.network import Array


def left_out(
    fit: Fit, rows: Codes, residual: Residual | None, sign: Array, noise: Array, parts: np.ndarray[Any, Any]
) -> tuple[Array, Array]:
    """Error and standard deviation of some of a fit's rows when all rows of the same part are missing.

    `sign` says which way these rows tell the residual's target, `noise` is theirs as far as anybody knows
    before; `parts` says of every row of the fit which part it belongs to.
    """
    system = fit.observations.system
    prior = np.log([one.prior for one in system.parameters])
    spread = np.array([one.spread for one in system.parameters])
    runs = fit.noise / np.sqrt(fit.weight)
    # a row that lies far off counts for less where others are foretold from it, not where it is foretold
    runs[rows] = noise if residual is None else residual.noise
    covariance = (fit.sensitivity * spread**2) @ fit.sensitivity.T + np.diag(runs**2)
    if residual is not None:
        covariance[np.ix_(rows, rows)] += np.outer(sign, sign) * residual.covariance()
    precision = np.linalg.inv(covariance)
    weighted = precision @ (fit.residuals + fit.sensitivity @ (fit.logs - prior))
    errors, deviations = np.full(len(parts), np.nan), np.full(len(parts), np.nan)
    for part in set(parts.tolist()):
        gone = np.flatnonzero(parts == part)
        own = np.linalg.inv(precision[np.ix_(gone, gone)])
        errors[gone] = own @ weighted[gone]
        deviations[gone] = np.sqrt(np.maximum(np.diag(own), 0.0))
    return errors[rows], np.sqrt(deviations[rows] ** 2 - runs[rows] ** 2 + noise**2)
