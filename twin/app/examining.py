"""Options of a sizing, looked at as closely as it takes to accept or reject them.

Rates without intervals are quick, so every option gets one. How busy the load makes it and how sure its rate
is, is asked in the order of costs until enough have been found that hold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from statistics import NormalDist
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from twin.app.answering import Twin, known_number
from twin.app.asking import BadQuestion
from twin.app.costs import Prices
from twin.core.checking import KNOWN, as_texts, check
from twin.core.columns import Codes, Columns, Numbers, Texts, without_text
from twin.core.fields import Row
from twin.core.prediction import THROUGHPUT, Answers

MOST_CONFIGURATIONS = 10_000
_OFFERED = "offered_rate_msgs_per_s"
# how many options are looked at more closely together
_TOGETHER = 256
_INNER, _OUTER = NormalDist().inv_cdf(0.75), NormalDist().inv_cdf(0.95)


class Wanted(Row):
    """What a configuration has to hold."""

    target: Annotated[float, Field(gt=0, le=1e9)]
    confidence: Annotated[float, Field(ge=0.5, le=0.99)] = 0.9
    ceiling_pct: Annotated[float, Field(gt=0, le=100)] = 80.0
    one_box_lost: bool = False
    growth_pct: Annotated[float, Field(ge=0, le=1000)] = 0.0


@dataclass(frozen=True)
class Option:
    """What is changed, on how many boxes, what that costs and does. Rates are those of all boxes together;
    `sure_rate` is held with the confidence that was asked for, with a box lost if it was."""

    changes: Mapping[str, Any]
    boxes: int
    cost: float
    rate: float | None
    sure_rate: float | None
    busiest: str | None
    busiest_pct: float | None
    holds: bool
    # why it does not, in a few words and in a sentence
    verdict: str
    reason: str
    # until a growing load is too much
    months: float | None

    @classmethod
    def impossible(cls, changes: Mapping[str, Any], problem: str) -> Option:
        """Changes that make no configuration."""
        return cls(changes, 0, 0.0, None, None, None, None, False, "not a configuration", problem, None)


def held_with(answers: Answers, confidence: float) -> Numbers:
    """The rate that is reached or passed with some probability. Between the ends of the two intervals, and
    beyond the wider one, the logarithm goes as a normal one would."""
    level = NormalDist().inv_cdf(confidence)
    with np.errstate(invalid="ignore"):
        value, inner, outer = (np.log(one) for one in (answers.value, answers.lo50, answers.lo90))
    if level <= _INNER:
        below = level / _INNER * (value - inner)
    elif level <= _OUTER:
        below = value - inner + (level - _INNER) / (_OUTER - _INNER) * (inner - outer)
    else:
        below = level / _OUTER * (value - outer)
    found: Numbers = np.exp(value - below)
    return found


@dataclass(frozen=True)
class Grid:
    """Combinations of what may be changed: those that make a configuration, and those that do not, with what
    is wrong with them."""

    changes: Sequence[dict[str, Any]]
    columns: Columns
    problems: Sequence[tuple[dict[str, Any], str]]


def grid_of(flat: Mapping[str, Any], options: Mapping[str, Sequence[Any]]) -> Grid:
    for name, values in options.items():
        if name not in KNOWN:
            raise BadQuestion((f"options.{name}", "unknown field"))
        if not values:
            raise BadQuestion((f"options.{name}", "no value to try"))
    count = math.prod(len(values) for values in options.values())
    if count > MOST_CONFIGURATIONS:
        raise BadQuestion(("options", f"{count} configurations; at most {MOST_CONFIGURATIONS}"))
    combinations = list(product(*options.values()))
    given = {
        name: np.full(count, text, dtype=object)
        for name, text in zip(flat, as_texts(list(flat.values())), strict=True)
    }
    for name, column in zip(options, zip(*combinations, strict=True), strict=True):
        given[name] = as_texts(column)
    checked = check(count, given)
    changes = [dict(zip(options, values, strict=True)) for values in combinations]
    problems = [
        (changes[at], "; ".join(f"{field}: {reason}" for field, reason in found))
        for at, found in checked.problems.items()
    ]
    return Grid([changes[at] for at in checked.rows], checked.columns, problems)


class _Rates:
    """What configurations can do, found out as far as it is asked for."""

    def __init__(self, twin: Twin, columns: Columns, confidence: float) -> None:
        self._twin, self._columns, self._confidence = twin, columns, confidence
        self.expected, self.sure = (np.full(columns.size, np.nan) for _ in range(2))
        self.excuse = np.full(columns.size, None, dtype=object)
        self._asked = np.zeros(columns.size, dtype=bool)

    def expect(self, rows: Codes) -> None:
        """Their rates without intervals, or why there are none."""
        searched = self._twin.search(self._columns.only(rows))
        self.expected[rows], self.excuse[rows] = searched.rate, searched.excuse

    def assure(self, rows: Codes) -> None:
        """How sure their rates are, and whether all that they depend on was ever measured."""
        new = np.unique(rows[~self._asked[rows]])
        if len(new):
            answers = self._twin.answer(self._columns.only(new), THROUGHPUT)
            self.sure[new], self.excuse[new] = held_with(answers, self._confidence), answers.excuse
            self._asked[new] = True

    def busiest(self, rows: Codes, loads: Numbers) -> tuple[Texts, Numbers]:
        """The busiest resource of each at an offered load, and how busy it is."""
        names, shares = np.full(len(rows), None, dtype=object), np.zeros(len(rows))
        told = self._twin.busy_at(self._columns.only(rows).with_(**{_OFFERED: loads}))
        for at, busy in enumerate(json.loads(text) if text else {} for text in told):
            if busy:
                names[at] = max(busy, key=busy.__getitem__)
                shares[at] = busy[names[at]]
        return names, shares


@dataclass(frozen=True)
class _State:
    """A way of running that has to hold the target: what a box does then, how many boxes' worth that is in
    all for each option, and what to call it."""

    rates: _Rates
    boxes: Numbers
    when: str = ""


class Examination:
    """Every configuration of a grid on every number of boxes; the option at i * len(boxes) + j is the i-th
    configuration on the j-th number."""

    def __init__(self, twin: Twin, grid: Grid, wanted: Wanted, boxes: Sequence[int], prices: Prices) -> None:
        self._twin, self._grid, self._wanted = twin, grid, wanted
        self._rows = np.repeat(np.arange(grid.columns.size), len(boxes))
        self._boxes = np.tile(np.array(boxes, dtype=np.int64), grid.columns.size)
        size = len(self._rows)
        self._verdict, self._reason, self._busiest = (np.full(size, None, dtype=object) for _ in range(3))
        self._share = np.zeros(size)
        self._looked_at = np.zeros(size, dtype=bool)
        self._cost = prices.of(grid.columns)[self._rows] * self._boxes
        if wanted.one_box_lost:
            alone = self._boxes % 2 == 1 if self._in_pairs else self._boxes == 1
            why = "its boxes stand in for each other in pairs" if self._in_pairs else "its only box is lost"
            self._reject(np.flatnonzero(alone), "no other box", lambda _: why)
        self._reject_slow(self._states[0], self._open(np.arange(len(self._rows))))

    @cached_property
    def _in_pairs(self) -> bool:
        """Boxes that take over each other's queue managers, instead of sharing one load."""
        return bool(np.isfinite(self._grid.columns.number("failed_over")).any())

    @cached_property
    def _states(self) -> list[_State]:
        columns, boxes = self._grid.columns, self._boxes.astype(float)
        usual = _Rates(self._twin, columns, self._wanted.confidence)
        if not self._wanted.one_box_lost:
            return [_State(usual, boxes)]
        if not self._in_pairs:
            return [_State(usual, boxes - 1, "with a box lost ")]
        taken_over = columns.with_(
            failed_over=np.full(columns.size, True, dtype=object),
            queue_managers=2 * columns.number("queue_managers"),
        )
        for_two = _Rates(self._twin, taken_over, self._wanted.confidence)
        return [_State(usual, boxes), _State(for_two, boxes / 2, "with a box lost ")]

    def accepted(self, most: int) -> Codes:
        """The cheapest that hold; the quicker of two that cost the same."""
        open_ = self._open(np.arange(len(self._rows)))
        total = self._total(self._states[0], open_)
        order = open_[np.lexsort((-total, self._cost[open_]))]
        found: list[int] = []
        for start in range(0, len(order), _TOGETHER):
            some = order[start : start + _TOGETHER]
            self._looked_at[some] = True
            for state in self._states[1:]:
                self._reject_slow(state, self._open(some))
            for reject in (self._reject_busy, self._reject_unsure):
                for state in self._states:
                    reject(state, self._open(some))
            found += self._open(some).tolist()
            if len(found) >= most:
                # others of this lot hold as well, and nobody asked for them
                self._looked_at[found[most:]] = False
                break
        return np.array(found[:most], dtype=np.int64)

    def rejected(self) -> Codes:
        """The cheapest first."""
        those = np.flatnonzero(~without_text(self._verdict))
        return those[np.argsort(self._cost[those], kind="stable")]

    def unexamined(self) -> int:
        return len(self._open(np.flatnonzero(~self._looked_at)))

    def options(self, those: Codes) -> list[Option]:
        rows, usual = self._rows[those], self._states[0].rates
        # what nobody had to ask for is not known
        sure = np.min([state.rates.sure[rows] * state.boxes[those] for state in self._states], axis=0)
        columns = (
            rows,
            self._boxes[those],
            self._cost[those],
            usual.expected[rows] * self._boxes[those],
            sure,
            self._share[those],
        )
        texts = zip(self._busiest[those], self._verdict[those], self._reason[those], strict=True)
        return [
            Option(
                changes=self._grid.changes[row],
                boxes=boxes,
                cost=cost,
                rate=known_number(rate),
                sure_rate=known_number(held),
                busiest=busiest,
                busiest_pct=100 * share if busiest else None,
                holds=verdict is None,
                verdict=verdict or "",
                reason=reason or "",
                months=self._months(held, share) if verdict is None else None,
            )
            for (row, boxes, cost, rate, held, share), (busiest, verdict, reason) in zip(
                zip(*(column.tolist() for column in columns), strict=True), texts, strict=True
            )
        ]

    def _months(self, sure: float, busy: float) -> float | None:
        """Until the rate is no longer sure, or a resource passes the ceiling: its use grows with the load."""
        wanted = self._wanted
        if not wanted.growth_pct:
            return None
        room = min(sure / wanted.target, wanted.ceiling_pct / 100 / busy if busy else math.inf)
        return math.log(room) / math.log1p(wanted.growth_pct / 100)

    def _open(self, options: Codes) -> Codes:
        return options[without_text(self._verdict[options])]

    def _reject(self, options: Iterable[int], verdict: str, reason: Callable[[int], str]) -> None:
        for at in options:
            self._verdict[at], self._reason[at] = verdict, reason(at)

    def _reject_excused(self, state: _State, options: Codes) -> Codes:
        """Returns the others."""
        excuse = state.rates.excuse[self._rows]
        fine = without_text(excuse[options])
        self._reject(options[~fine], "no answer", lambda at: str(excuse[at]))
        return options[fine]

    def _reject_slow(self, state: _State, options: Codes) -> None:
        state.rates.expect(np.unique(self._rows[options]))
        options = self._reject_excused(state, options)
        total, told = self._total(state, options), f"{state.when}only {{:.4g}} msgs/s expected"
        self._reject_below(options, total, "too slow", told)

    def _reject_busy(self, state: _State, options: Codes) -> None:
        names, shares = state.rates.busiest(self._rows[options], self._wanted.target / state.boxes[options])
        busier = shares > self._share[options]
        self._busiest[options[busier]], self._share[options[busier]] = names[busier], shares[busier]
        over = 100 * shares > self._wanted.ceiling_pct
        self._reject(
            options[over],
            "too busy",
            lambda at: f"{state.when}{self._busiest[at]} is {self._share[at]:.0%} busy",
        )

    def _reject_unsure(self, state: _State, options: Codes) -> None:
        state.rates.assure(self._rows[options])
        options = self._reject_excused(state, options)
        sure = state.rates.sure[self._rows[options]] * state.boxes[options]
        level = f"{self._wanted.confidence:.0%}"
        self._reject_below(
            options, sure, "not sure enough", f"{state.when}only {{:.4g}} msgs/s held at {level}"
        )

    def _reject_below(self, options: Codes, rates: Numbers, verdict: str, reason: str) -> None:
        below = ~(rates >= self._wanted.target)
        said = dict(zip(options.tolist(), rates.tolist(), strict=True))
        self._reject(options[below].tolist(), verdict, lambda at: reason.format(said[at]))

    def _total(self, state: _State, options: Codes) -> Numbers:
        total: Numbers = state.rates.expected[self._rows[options]] * state.boxes[options]
        return total
