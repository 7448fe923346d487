"""What may have changed in a broker, a product on a machine, that was measured before.

What it alone has may move, what others share with it may not, or their answers would move too: the factors of
its product where other products have some, else those of its machine where other machines have some, else the
system's times, which then are nobody else's. A product that was measured on several machines moves on all of
them; and what no factor of its own multiplies, as a pipe's width, does not move at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twin.calibration.calibration import Calibration
from twin.core.columns import Codes, Columns
from twin.queueing.network import Array
from twin.systems.model import Effect, System

# Judged: one standard deviation of the logarithm of what a change multiplies all times by, as another clock
# or another user of the machine does, and each of them for itself; and of any other number, as the forces of
# a message
ALIKE = 0.35
EACH = 0.2
NUMBER = 0.35
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
    times, numbers = _free(system, calibration, columns)
    names = np.array([one.parameter for one in calibration.demands], dtype=object)
    is_time = np.isin(names, sorted(times))
    moves = is_time | np.isin(names, sorted(numbers))
    places, others = np.flatnonzero(moves), np.flatnonzero(~moves)
    covariance = _covariance(calibration)
    crossed = covariance[np.ix_(others, places)]
    along: Array = np.asarray(np.linalg.solve(covariance[np.ix_(others, others)], crossed).T, np.float64)
    known = covariance[np.ix_(places, places)] - along @ crossed
    of_times = is_time[places]
    change = np.diag(np.where(of_times, EACH, NUMBER) ** 2) + ALIKE**2 * np.outer(of_times, of_times)
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


def _free(system: System, calibration: Calibration, columns: Columns) -> tuple[set[str], set[str]]:
    """Times, and other numbers, by the names of their parameters."""
    factors = {name: effect for effect in system.effects for name in _labelled(effect, calibration)}
    times = {
        one.parameter
        for one in calibration.demands
        if one.parameter not in factors and one.demand_unit.partition("/")[0] in _TIMES
    }
    groups = {name.partition("[")[0] for name in times}
    kinds = {effect.columns for effect in system.effects}
    for kind in sorted(kinds, key=lambda names: (_PRODUCT not in names, names)):
        label = columns.texts(*kind)[0]
        of_kind = {name: effect for name, effect in factors.items() if effect.columns == kind}
        own = {name: effect for name, effect in of_kind.items() if effect.parameter(label).name == name}
        if own and len(of_kind) > len(own):
            of_times = {name for name, effect in own.items() if groups.issuperset(effect.of)}
            return of_times, own.keys() - of_times
    return times, set()


def _labelled(effect: Effect, calibration: Calibration) -> list[str]:
    """Factors of products or machines that rows have told of."""
    of_nobody = {one.name for one in effect.of_another}
    names = [one.parameter for one in calibration.demands]
    return [name for name in names if name.startswith(f"{effect.name}[") and name not in of_nobody]
