"""How the figures of a table become charts: what goes along the axis, what tells lines apart, and when a
chart has to become several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from twin.app.book.figures import Figure
from twin.app.book.wording import COLUMNS

# as many lines as a reader can tell apart by colour
_MOST_SERIES = 6
# fewer points than this on a line, in the mean, and a line tells less than a name for each row
_FEWEST_POINTS = 2.0

Settings = Mapping[str, Any]
_Values = tuple[Any, ...]


@dataclass(frozen=True)
class Arrangement:
    """Columns: along the axis (None: every configuration has a name of its own), those that tell lines apart,
    and those that tell charts apart."""

    axis: str | None
    apart: tuple[str, ...]
    charts: tuple[str, ...] = ()


def arranged(figures: Sequence[Figure]) -> Arrangement:
    rows = list({one.configuration_id: one.settings for one in figures}.values())
    varying = [name for name in COLUMNS if len(_distinct(rows, (name,))) > 1]
    axis = _axis(rows, varying)
    # where as much differs as there are rows, no single column is what a row is about
    if axis is None or len(varying) >= len(rows):
        return Arrangement(None, tuple(varying))
    apart = _needed(rows, axis, varying)
    points = len(rows) / len(_distinct(rows, apart))
    if points < _FEWEST_POINTS or len(_distinct(rows, (axis, *apart))) < len(rows):
        return Arrangement(None, _needed(rows, None, varying))
    charts = _charts(rows, apart)
    return Arrangement(axis, tuple(name for name in apart if name not in charts), charts)


def values_of(settings: Settings, columns: Iterable[str]) -> _Values:
    return tuple(settings.get(name) for name in columns)


def _axis(rows: Sequence[Settings], varying: Sequence[str]) -> str | None:
    """What varies most; a number where it can be."""
    sizes = {
        name: (len(_distinct(rows, (name,))), COLUMNS[name].kind in ("integer", "number")) for name in varying
    }
    most = max(sizes, key=lambda name: sizes[name], default=None)
    if most is None or sizes[most][0] < 3:
        return None
    # the only thing that varies, and no number: its names are the names of the rows
    return None if len(varying) == 1 and not sizes[most][1] else most


def _needed(rows: Sequence[Settings], axis: str | None, varying: Sequence[str]) -> tuple[str, ...]:
    """Columns that go together with others tell nothing more."""
    given = () if axis is None else (axis,)
    found: tuple[str, ...] = ()
    for name in sorted(varying, key=lambda one: -len(_distinct(rows, (one,)))):
        if name != axis and len(_distinct(rows, (*given, *found, name))) > len(
            _distinct(rows, (*given, *found))
        ):
            found = (*found, name)
    return found


def _charts(rows: Sequence[Settings], apart: tuple[str, ...]) -> tuple[str, ...]:
    """The fewest charts that leave each few enough lines."""
    if len(_distinct(rows, apart)) <= _MOST_SERIES:
        return ()
    choices = [some for size in range(1, len(apart) + 1) for some in combinations(apart, size)]
    readable = [some for some in choices if _most_lines(rows, some, apart) <= _MOST_SERIES]
    return min(readable, key=lambda some: (len(_distinct(rows, some)), len(some)))


def _most_lines(rows: Sequence[Settings], charts: tuple[str, ...], apart: tuple[str, ...]) -> int:
    of_chart: dict[_Values, set[_Values]] = {}
    for row in rows:
        of_chart.setdefault(values_of(row, charts), set()).add(values_of(row, apart))
    return max(len(lines) for lines in of_chart.values())


def _distinct(rows: Sequence[Settings], columns: Iterable[str]) -> set[_Values]:
    names = tuple(columns)
    return {values_of(row, names) for row in rows}
