"""Sizing: the cheapest configuration that holds a rate, and why the others do not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twin.app.answering import Twin, known_number
from twin.app.asking import BadQuestion
from twin.app.costs import Prices
from twin.app.examining import Examination, Option, Wanted, grid_of
from twin.core.checking import as_texts, check
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
    accepted = examination.accepted(most)
    alone = Examination(
        twin, grid_of(flat, {}), wanted.model_copy(update={"one_box_lost": False}), [1], prices
    )
    alone.accepted(1)
    return Sizing(
        wanted,
        prices.currency,
        alone.option(0),
        tuple(examination.option(one) for one in accepted),
        tuple(examination.option(one) for one in examination.rejected()),
        examination.unexamined(),
        tuple(_steps(twin, flat, options, prices)),
    )


def _steps(
    twin: Twin, flat: Mapping[str, Any], options: Mapping[str, Sequence[Any]], prices: Prices
) -> list[Step]:
    """From the configuration as it stands, the largest gain first."""
    changes: list[dict[str, Any]] = [{}]
    changes += [
        {name: value}
        for name, values in options.items()
        for value in values
        if as_texts([value])[0] != as_texts([flat.get(name)])[0]
    ]
    names = {name for change in changes for name in change}
    given = {
        name: as_texts([change.get(name, flat.get(name)) for change in changes]) for name in {*flat, *names}
    }
    checked = check(len(changes), given)
    answers = twin.answer(checked.columns, THROUGHPUT)
    costs = prices.of(checked.columns)
    if not len(checked.rows) or checked.rows[0] != 0:
        return []
    here, cost = answers.value[0], costs[0]
    found = []
    for place, at in enumerate(checked.rows[1:].tolist(), start=1):
        rate = known_number(answers.value[place])
        gain = known_number(100 * (answers.value[place] / here - 1))
        found.append(Step(changes[at], rate, gain, float(costs[place] - cost), answers.excuse[place]))
    return sorted(found, key=lambda one: -math.inf if one.gain_pct is None else one.gain_pct, reverse=True)
