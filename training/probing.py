"""Where a measurement tells most: configurations chosen one after the other, each the one that takes most of
the doubt from all candidates together, given those chosen before.

Around what is believed now everything is taken as normal: the doubt of the demands, seen through the physics,
the doubt of the correction, and the noise of a run. Then what a measurement leaves does not depend on what it
shows, and the whole choice can be made before the first run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from training.correction import NO_CORRECTION, Correction
from twin.calibration.calibration import Calibration, believed, noise_keys
from twin.calibration.physics import Physics
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.prediction import THROUGHPUT
from twin.queueing.network import Array
from twin.systems.model import MACHINE, Batch, System, Target
from twin.systems.transfer import Transfer, transfer

# directions in which the demands are as good as known, in squared logarithms
_KNOWN = 1e-12


def least_sure(
    system: System,
    calibration: Calibration | None,
    candidates: Sequence[Configuration],
    count: int,
    known: Sequence[Configuration] = (),
    correction: Correction = NO_CORRECTION,
) -> list[int]:
    """Places of candidates of one system, in the order of choice; without a calibration by what was believed
    before any row. `known` were measured, but the calibration has not seen them: they are not chosen again.
    What the physics does not cover is never chosen, so there may be fewer than asked for."""
    target = system.target(THROUGHPUT)
    if target is None:
        raise KeyError(f"{system.name} does not explain {THROUGHPUT}")
    asked = [at for at, excuse in enumerate(system.excuses(Batch(candidates))) if excuse is None]
    told = [one for one, excuse in zip(known, system.excuses(Batch(known)), strict=True) if excuse is None]
    if not asked:
        return []
    columns = Columns.of([*(candidates[at] for at in asked), *told])
    calibration = calibration or believed(system.seen_in(columns))
    covariance = _doubt(system, calibration, columns, target) + _left_over(correction, columns)
    keys = noise_keys(system, Batch(columns), THROUGHPUT)
    noise = np.array([calibration.noise.get(key, target.noise) for key in keys]) * correction.noise_factor
    # a metric that does not apply somewhere is not measured there
    covered = np.isfinite(np.diag(covariance))
    covariance[~covered], covariance[:, ~covered] = 0.0, 0.0
    mine = np.arange(columns.size) < len(asked)
    for place in np.flatnonzero(~mine & covered).tolist():
        covariance = _after(covariance, place, noise)
    measured = {one.configuration_id for one in known}
    left = np.array([candidates[at].configuration_id not in measured for at in asked]) & covered[mine]
    chosen: list[int] = []
    for _ in range(min(count, int(left.sum()))):
        gains = (covariance[mine] ** 2).sum(axis=0) / (np.diag(covariance) + noise**2)
        place = int(np.argmax(np.where(left, gains[mine], -1.0)))
        chosen.append(asked[place])
        left[place] = False
        covariance = _after(covariance, place, noise)
    return chosen


def _after(covariance: Array, place: int, noise: Array) -> Array:
    """What a run at this place leaves."""
    shared = covariance[place]
    left: Array = covariance - np.outer(shared, shared) / (shared[place] + noise[place] ** 2)
    return left


def _doubt(system: System, calibration: Calibration, columns: Columns, target: Target) -> Array:
    """Covariance of the logarithms that the physics tells, NaN where it tells none. Demands are moved by one
    standard deviation each way, not by a hair: a ceiling that may hide them by chance hides them only so
    far."""
    fitted = calibration.seen(system)
    seen, logs, covariance = _with_labels(fitted, calibration, columns)
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _KNOWN
    steps = (vectors[:, kept] * np.sqrt(values[kept])).T
    moved = Transfer.none(columns.size)
    if calibration.reference is not None:
        moved = transfer(columns, calibration.reference)
    metrics = Physics(seen, Batch(columns, moved)).at_each(np.vstack([logs + steps, logs - steps]))
    more, less = np.split(target.to_scale(metrics[target.metric]), 2)
    apart = (more - less) / 2
    found: Array = apart.T @ apart
    if not any(effect.between_machines for effect in system.effects):
        same = columns.texts(*MACHINE)[:, None] == columns.texts(*MACHINE)[None, :]
        found = found + np.where(same, np.outer(moved.doubt, moved.doubt), 0.0)
    return found


def _with_labels(fitted: System, calibration: Calibration, columns: Columns) -> tuple[System, Array, Array]:
    """With a factor for each product and machine that no row has: two new ones need not be alike."""
    known = {one.name for one in fitted.parameters}
    new = [
        parameter
        for effect in fitted.effects
        for label in sorted(set(columns.texts(*effect.columns)))
        if (parameter := effect.parameter(label)).name not in known
    ]
    size, whole = len(fitted.parameters), len(fitted.parameters) + len(new)
    covariance = np.zeros((whole, whole))
    covariance[:size, :size] = np.array(calibration.covariance).reshape(size, size)
    covariance[range(size, whole), range(size, whole)] = [one.spread**2 for one in new]
    logs = np.concatenate([calibration.logs, np.log([one.prior for one in new])])
    return replace(fitted, parameters=(*fitted.parameters, *new)), logs, covariance


def _left_over(correction: Correction, columns: Columns) -> Array:
    """What the correction does not know, in common as far as configurations are alike."""
    if correction.residual is None:
        return np.zeros((columns.size, columns.size))
    _, variance, _ = correction.at(columns)
    alike = replace(correction.residual, rows=columns).covariance()
    own = np.sqrt(variance / np.diag(alike))
    found: Array = alike * np.outer(own, own)
    return found
