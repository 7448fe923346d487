"""Sizing: the cheapest configuration that holds a rate, and why the others do not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from twin.app.answering import Twin, known_number
from twin.app.asking import BadQuestion
from twin.app.costs import Prices
from twin.app.examining import Examination, Option, Wanted, grid_of
from twin.core.checking import problems_of
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.prediction import THROUGHPUT

_OFFERED = "offered_rate_msgs_per_s"


@dataclass(frozen=True)
class Step:
    """One field changed alone: what it buys, and for how much."""

    change: Mapping[str, Any]
    rate: float | None
    gain_pct: float | None
    extra_cost: float
    excuse: str | None

    @property
    def gain_pct_per_1000(self) -> float | None:
        if self.gain_pct is None or self.extra_cost <= 0:
            return None
        return 1000 * self.gain_pct / self.extra_cost


@dataclass(frozen=True)
class Sizing:
    wanted: Wanted
    currency: str
    # the configuration as it stands, on one box
    asked: Option
    # cheapest first
    accepted: tuple[Option, ...]
    rejected: tuple[Option, ...]
    # dearer than enough others that hold, and not looked at for that
    dearer: int
    steps: tuple[Step, ...]

    @property
    def examined(self) -> int:
        return len(self.accepted) + len(self.rejected) + self.dearer

    @property
    def rejected_by(self) -> dict[str, int]:
        """How many for which reason, the most frequent first."""
        counts: dict[str, int] = {}
        for one in self.rejected:
            counts[one.verdict] = counts.get(one.verdict, 0) + 1
        return dict(sorted(counts.items(), key=lambda one: -one[1]))


def size(
    twin: Twin,
    base: Configuration,
    wanted: Wanted,
    options: Mapping[str, Sequence[Any]],
    boxes: Sequence[int],
    prices: Prices,
    most: int = 10,
) -> Sizing:
    """`most`: how many that hold are enough."""
    flat = {name: value for name, value in base.flat().items() if value is not None and name != _OFFERED}
    if wanted.one_box_lost and flat.get("failed_over"):
        raise BadQuestion(("failed_over", "a hub is sized from normal operation"))
    grid = grid_of(flat, options)
    examination = Examination(twin, grid, wanted, sorted(set(boxes)), prices)
    accepted = examination.options(examination.accepted(most))
    rejected = examination.options(examination.rejected())
    rejected += [Option.impossible(changes, problem) for changes, problem in grid.problems]
    as_it_stands = wanted.model_copy(update={"one_box_lost": False})
    alone = Examination(twin, grid_of(flat, {}), as_it_stands, [1], prices)
    alone.accepted(1)
    (asked,) = alone.options(np.array([0]))
    return Sizing(
        wanted,
        prices.currency,
        asked,
        tuple(accepted),
        tuple(rejected),
        examination.unexamined(),
        tuple(_steps(twin, flat, options, prices)),
    )


def _steps(
    twin: Twin, flat: Mapping[str, Any], options: Mapping[str, Sequence[Any]], prices: Prices
) -> list[Step]:
    """From the configuration as it stands, the largest gain first."""
    changes = [{name: value} for name, values in options.items() for value in values]
    possible = [change for change in changes if not problems_of({**flat, **change})]
    rows = [flat, *(Configuration.from_flat({**flat, **change}).flat() for change in possible)]
    columns = Columns.of_rows(rows)
    answers, costs = twin.answer(columns, THROUGHPUT), prices.of(columns)
    found = [
        Step(
            change,
            known_number(answers.value[at]),
            known_number(100 * (answers.value[at] / answers.value[0] - 1)),
            float(costs[at] - costs[0]),
            answers.excuse[at],
        )
        for at, change in enumerate(possible, start=1)
        if any(rows[at][name] != flat.get(name) for name in change)
    ]
    return sorted(found, key=lambda one: -math.inf if one.gain_pct is None else one.gain_pct, reverse=True)
