"""What may have changed in a broker, a product on a machine, that was measured before.

What it alone has may move, what others share with it may not, or their answers would move too: the factors of
its product where other products have some, else those of its machine where other machines have some, else the
system's times, which then are nobody else's. Numbers that are no times (how many forces, which share) say how
a product works and stay. A product that was measured on several machines moves on all of them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from twin.calibration.calibration import Calibration
from twin.core.columns import Codes, Columns
from twin.queueing.network import Array
from twin.systems.model import System

# Judged: one standard deviation of the logarithm of what a change multiplies all times by, as another clock
# or another user of the machine does, and each time for itself
ALIKE = 0.35
EACH = 0.2
_PRODUCT = "product"
_TIMES = ("s", "ms", "us")


@dataclass(frozen=True)
class Loose:
    """Demands that may move, and the others. Of the first: how well they are known, given the others; what
    may have changed; and by how much they go along with the others."""

    places: Codes
    others: Codes
    known: Array
    change: Array
    along: Array


def loose(system: System, calibration: Calibration, columns: Columns) -> Loose:
    """Of configurations of one broker."""
    free = _free(system, calibration, columns)
    moves = np.array([one.parameter in free for one in calibration.demands], dtype=bool)
    places, others = np.flatnonzero(moves), np.flatnonzero(~moves)
    covariance = _covariance(calibration)
    crossed = covariance[np.ix_(others, places)]
    along = np.linalg.solve(covariance[np.ix_(others, others)], crossed).T
    known = covariance[np.ix_(places, places)] - along @ crossed
    change = np.full(known.shape, ALIKE**2) + EACH**2 * np.eye(len(places))
    return Loose(places, others, known, change, along)


def loosened(system: System, calibration: Calibration, columns: Columns) -> Calibration:
    """The same with the doubt of a broker that has changed nobody knows how: what to choose probes by after
    an alarm."""
    found = loose(system, calibration, columns)
    covariance = _covariance(calibration)
    covariance[np.ix_(found.places, found.places)] += found.change
    return calibration.model_copy(update={"covariance": tuple(tuple(row) for row in covariance.tolist())})


def _covariance(calibration: Calibration) -> Array:
    size = len(calibration.demands)
    return np.array(calibration.covariance).reshape(size, size)


def _free(system: System, calibration: Calibration, columns: Columns) -> Collection[str]:
    names = {one.parameter for one in calibration.demands}
    factors = {name for name in names for effect in system.effects if name.startswith(f"{effect.name}[")}
    of_nobody = {one.name for effect in system.effects for one in effect.of_another}
    kinds = {effect.columns for effect in system.effects}
    for kind in sorted(kinds, key=lambda columns: (_PRODUCT not in columns, columns)):
        effects = [effect for effect in system.effects if effect.columns == kind]
        label = columns.texts(*kind)[0]
        own = {effect.parameter(label).name for effect in effects} & names
        all_labels = {name for name in factors for effect in effects if name.startswith(f"{effect.name}[")}
        if own and all_labels - own - of_nobody:
            return own
    return {
        one.parameter
        for one in calibration.demands
        if one.parameter not in factors and one.demand_unit.partition("/")[0] in _TIMES
    }
