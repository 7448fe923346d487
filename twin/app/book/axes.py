"""Where on the axis of a chart a figure stands, and what is written there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from twin.app.book.arranging import Arrangement
from twin.app.book.figures import Figure
from twin.app.book.wording import COLUMNS, exactly, told, told_all, words

# ticks nearer to each other than this part of the axis would run into one another
_APART = 0.09
# from this ratio of the greatest to the least on, equal steps are equal ratios
_WIDE = 20.0


@dataclass(frozen=True)
class Axis:
    """Along the numbers of a column; or a name for each place, in this order."""

    column: str | None
    apart: tuple[str, ...]
    title: str
    ticks: tuple[tuple[float, str], ...] = ()
    log: bool = False
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, figures: Sequence[Figure], how: Arrangement) -> Axis:
        if how.axis is None:
            named = dict.fromkeys(_name(one, how.apart) for one in sorted(figures, key=lambda one: one.line))
            return cls(None, how.apart, "", names=tuple(named))
        field = COLUMNS[how.axis]
        title = words(how.axis) + (f", {field.unit}" if field.unit else "")
        found = sorted({one.settings.get(how.axis) for one in figures}, key=sorting)
        numbers = _evenly(found)
        if numbers is None:
            names = tuple(_category(how.axis, one) for one in found)
            return cls(how.axis, how.apart, title, names=names)
        log = numbers[0] > 0 and numbers[-1] / numbers[0] >= _WIDE
        ticks = tuple((one, _tick(one, field.unit)) for one in _with_room(numbers, log))
        return cls(how.axis, how.apart, title, ticks, log)

    def at(self, one: Figure) -> Any:
        if self.column is None:
            return _name(one, self.apart)
        value = one.settings.get(self.column)
        return _category(self.column, value) if self.names else value

    def order(self, at: Any) -> float:
        return float(self.names.index(at) if self.names else at)

    def spec(self) -> dict[str, Any]:
        if self.names:
            return {"title": self.title, "names": list(self.names)}
        return {"title": self.title, "log": self.log, "ticks": [list(one) for one in self.ticks]}


def sorting(value: Any) -> tuple[int, float, str]:
    """Nothing first, then numbers by size, then anything else by its letters."""
    if isinstance(value, int | float):
        return 1, float(value), ""
    return (0, 0.0, "") if value is None else (2, 0.0, str(value))


def _evenly(found: Iterable[Any]) -> list[float] | None:
    """As numbers, if they can stand on an axis: all are there, and nothing stands at zero that is far from
    the others."""
    values = list(found)
    if not all(isinstance(one, int | float) for one in values):
        return None
    numbers = [float(one) for one in values]
    steps = [after - before for before, after in pairwise(numbers)]
    return numbers if numbers[0] > 0 or not steps or numbers[-1] < _WIDE * min(steps) else None


def _with_room(numbers: Sequence[float], log: bool) -> list[float]:
    """As many of the measured places as have room for what is written below them."""
    scaled = [math.log(one) if log else one for one in numbers]
    length = scaled[-1] - scaled[0] or 1.0
    kept = [0]
    for at in range(1, len(scaled)):
        if (scaled[at] - scaled[kept[-1]]) / length >= _APART:
            kept.append(at)
    return [numbers[at] for at in kept]


def _name(one: Figure, apart: Iterable[str]) -> str:
    return told_all(apart, one.settings) or one.header


def _category(axis: str, value: Any) -> str:
    return told(axis, None) if value is None else exactly(value)


def _tick(value: float, unit: str | None) -> str:
    return exactly(value, unit if unit == "bytes" else None).removesuffix(" bytes")
