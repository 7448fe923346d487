"""Intervals from errors on rows that were left out: they hold for a new row whatever the errors look like."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from twin.queueing.network import Array

_INNER, _OUTER = 0.5, 0.9
_FEWEST = 20
# with fewer than twenty parts no level beyond this can be told from their errors
_MOST = 0.95


@dataclass(frozen=True)
class Reach:
    """How far a value may be off, in the unit of the errors it was made from, one time in two and one time in
    ten."""

    inner: float
    outer: float

    @classmethod
    def of(cls, errors: Array, parts: int | None = None) -> Reach:
        """Of absolute errors on rows left out one by one, or in so many parts. Rows of a part err together: a
        new part is like one of them, so few parts need a wider reach. Too few rows to tell a tenth of them
        are taken for normal."""
        known = np.sort(np.abs(errors[np.isfinite(errors)]))
        if len(known) < _FEWEST:
            return NORMAL
        wider = 1 + 1 / (parts or len(known))
        return cls(*(_quantile(known, min(level * wider, _MOST)) for level in (_INNER, _OUTER)))

    def at_least(self, other: Reach) -> Reach:
        return Reach(max(self.inner, other.inner), max(self.outer, other.outer))


def _quantile(errors: Array, level: float) -> float:
    rank = math.ceil(round(len(errors) * level, 9))
    return float(errors[min(rank, len(errors)) - 1])


# of errors in standard deviations
NORMAL = Reach(NormalDist().inv_cdf(0.5 + _INNER / 2), NormalDist().inv_cdf(0.5 + _OUTER / 2))
