"""How alike two configurations are: in how many choices they differ, and how far their numbers lie apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from twin.core.columns import Codes, Columns, Texts
from twin.core.configuration import Configuration
from twin.core.fields import fields_of
from twin.queueing.network import Array

# a version identifies, it does not describe; demands are answers; the offered rate is no property
_FIELDS = tuple(
    field
    for field in fields_of(Configuration)
    if field.name not in {"version", "offered_rate_msgs_per_s"} and not field.name.startswith("demand_")
)
NUMBERS = tuple(field.name for field in _FIELDS if field.kind in ("integer", "number"))
CHOICES = tuple(field.name for field in _FIELDS if field.kind not in ("integer", "number"))
_STILL = 1e-6


@dataclass(frozen=True)
class Scale:
    """What counts as far: the spread of each number, as a logarithm, among some configurations."""

    spreads: dict[str, float]

    @classmethod
    def of(cls, columns: Columns) -> Scale:
        found = {name: float(_logarithms(columns, name).std()) for name in NUMBERS}
        return cls({name: spread for name, spread in found.items() if spread > _STILL})

    def to_plain(self) -> dict[str, float]:
        return self.spreads

    @classmethod
    def from_plain(cls, plain: dict[str, float]) -> Scale:
        return cls(plain)

    def plain_rows(self, columns: Columns) -> dict[str, list[Any]]:
        """The columns that distances look at, without those that nobody has."""
        rows = [columns.row(at, (*self.spreads, *CHOICES)) for at in range(columns.size)]
        names = [name for name in (*self.spreads, *CHOICES) if any(row[name] is not None for row in rows)]
        return {name: [row[name] for row in rows] for name in names}


def distances(those: Columns, these: Columns, scale: Scale) -> tuple[Array, Array]:
    """Squared distance of the numbers in spreads, and the number of choices that differ; a row for each of
    `those`, a column for each of `these`."""
    ones, others = _numbers(those, scale), _numbers(these, scale)
    apart = (ones**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * ones @ others.T
    (some, codes), (known, known_codes) = _kinds(those), _kinds(these)
    differing = (some[:, None, :] != known[None, :, :]).sum(axis=2).astype(float)
    return np.maximum(apart, 0.0), differing[codes[:, None], known_codes[None, :]]


def _numbers(columns: Columns, scale: Scale) -> Array:
    found = [_logarithms(columns, name) / spread for name, spread in scale.spreads.items()]
    return np.stack(found, axis=1) if found else np.zeros((columns.size, 0))


def _kinds(columns: Columns) -> tuple[Texts, Codes]:
    """The distinct choices, a row each, and which of them each configuration has: kinds are few where
    configurations are many."""
    _, codes = columns.labels(*CHOICES)
    distinct, first, places = np.unique(codes, return_index=True, return_inverse=True)
    some = columns.only(first)
    rows = np.stack([some.texts(name) for name in CHOICES], axis=1)
    return rows.reshape(len(distinct), len(CHOICES)), places


def _logarithms(columns: Columns, name: str) -> Array:
    found: Array = np.log1p(columns.number(name, absent=0.0))
    return found
