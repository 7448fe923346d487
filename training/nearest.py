"""The baseline: what the most similar measured configuration did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from training.conformal import Reach
from training.kinds import Scale, distances
from twin.core.columns import Codes, Columns
from twin.queueing.network import Array

PREDICTOR = "nearest"
# rows compared at once with all measured ones
_TOGETHER = 4_000


@dataclass(frozen=True)
class Nearest:
    """Of one target."""

    scale: Scale
    rows: Columns
    ids: tuple[str, ...]
    logarithms: Array
    reach: Reach

    @classmethod
    def fit(cls, rows: Columns, ids: tuple[str, ...], logarithms: Array) -> Nearest:
        scale = Scale.of(rows)
        apart = _apart(rows, rows, scale)
        np.fill_diagonal(apart, np.inf)
        errors = logarithms[apart.argmin(axis=1)] - logarithms if len(ids) > 1 else np.zeros(0)
        return cls(scale, rows, ids, logarithms, Reach.of(errors))

    def places(self, columns: Columns, count: int = 1) -> tuple[Codes, Array]:
        """The most similar rows of each configuration, nearest first, and how far they are."""
        count = min(count, len(self.ids))
        places, apart = np.empty((columns.size, count), dtype=np.int64), np.empty((columns.size, count))
        for start in range(0, columns.size, _TOGETHER):
            rows = np.arange(start, min(start + _TOGETHER, columns.size))
            found = _apart(columns.only(rows), self.rows, self.scale)
            places[rows] = np.argsort(found, axis=1, kind="stable")[:, :count]
            apart[rows] = np.take_along_axis(found, places[rows], axis=1)
        return places, apart

    def at(self, columns: Columns) -> Array:
        found: Array = self.logarithms[self.places(columns)[0][:, 0]]
        return found

    def to_plain(self) -> dict[str, Any]:
        return {
            "scale": self.scale.to_plain(),
            "rows": self.scale.plain_rows(self.rows),
            "ids": self.ids,
            "logarithms": self.logarithms.tolist(),
            "reach": [self.reach.inner, self.reach.outer],
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Nearest:
        return cls(
            Scale.from_plain(plain["scale"]),
            Columns.from_mapping(len(plain["ids"]), plain["rows"]),
            tuple(plain["ids"]),
            np.array(plain["logarithms"]),
            Reach(*plain["reach"]),
        )


def _apart(those: Columns, these: Columns, scale: Scale) -> Array:
    numbers, kinds = distances(those, these, scale)
    return np.sqrt(numbers) + kinds
