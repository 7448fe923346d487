"""Two boxes with the same work, one of which fails: the other runs the work of both after a while.

Messages for the failed box pile up until its queue managers run again. What the surviving box has left beside
the load of both then works off the backlog. Messages that the failed box had in hand when it failed, one per
engine at most, are taken for done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain, cycle, pairwise

import numpy as np

from twin.queueing.network import Array, BadNetwork
from twin.simulation.compiling import MOST_JOBS, Compiled
from twin.simulation.engine import Stopped, why_stopped
from twin.simulation.model import Model, Origin, Step
from twin.simulation.playing import POOL

_BEFORE_S = 60
# how much longer than expected a backlog is watched, and how long one that only grows
_PATIENCE = 3
_WATCHED_S = 300
_LONGEST_S = 36_000
# a backlog that gains so much of what comes in is not being worked off
_GROWING = 0.01
_WINDOW_S = 5
_POOLS = f"second box: {POOL}"


@dataclass(frozen=True)
class FailOver:
    """Second by second from `_BEFORE_S` before the failure: messages completed, those waiting or under way,
    and the 95th percentile of the response times of what was completed."""

    messages: Array
    backlog: Array
    response_p95: Array
    takeover: float
    # seconds from the failure until the backlog is as before; None where it was not seen
    normal_again: float | None
    # messages a second that the backlog gained in the end, when it was not worked off
    growth: float

    @property
    def time(self) -> Array:
        """From the failure."""
        return np.arange(len(self.messages), dtype=np.float64) - _BEFORE_S


def fail_over(alone: Model, together: Model, takeover: float, spare: float, seed: int = 1) -> FailOver:
    """`alone`: one box with its own load from outside; `together`: with the load of both. `spare`: messages a
    second that a box with the work of both has left, as far as a formula can tell."""
    if not 0 <= takeover <= _LONGEST_S:
        raise BadNetwork(f"the takeover takes {takeover:g} s, not 0 to {_LONGEST_S}")
    own = sum(one.rate for one in alone.classes)
    drain = own * takeover / spare if spare > 0 else np.inf
    watched = min(_PATIENCE * drain + _WATCHED_S, _LONGEST_S) if spare > 0 else _WATCHED_S
    seconds = int(_BEFORE_S + takeover + watched)
    expected = int(2 * own * seconds * 1.2) + 1000
    if expected > MOST_JOBS:
        raise BadNetwork(
            f"{expected} messages in {seconds} s are more than a simulation can hold: {MOST_JOBS}"
        )
    return _Boxes(alone, together, seed, expected).played(seconds, takeover)


class _Boxes:
    """Both boxes, and the one with the work of both, in one model: classes change from one to the other."""

    def __init__(self, alone: Model, together: Model, seed: int, messages: int) -> None:
        first, second, both = (_renamed(model, f"{name}: ") for model, name in zip(
            (alone, alone, together), ("first box", "second box", "both"), strict=True
        ))  # fmt: skip
        # nothing comes to the boxes together as long as they are apart
        asleep = [replace(one, rate=0.0) for one in both.classes]
        model = Model(
            [*first.places, *second.places, *both.places],
            [*first.classes, *second.classes, *asleep],
            alone.variation,
        )
        self._random = np.random.default_rng(seed)
        self._compiled = Compiled(model, messages, self._random, room=messages)
        kinds = [_from_outside(one) for one in (first, second)]
        # the queue managers of the second box come after those of the first
        self._becomes = list(zip(chain(*kinds), cycle(_from_outside(both)), strict=False))
        self._pools = [place.name for place in second.places if place.name.startswith(_POOLS)]

    def played(self, seconds: int, takeover: float) -> FailOver:
        state = self._compiled.state
        backlog = np.zeros(seconds)
        taken_over = _BEFORE_S + math.ceil(takeover)
        for second in range(seconds):
            if second == _BEFORE_S:
                for pool in self._pools:
                    self._compiled.open_up(pool, 0)
            if second == taken_over:
                self._take_over()
            why = why_stopped(self._compiled.plan, state, self._random, len(state.response), second + 1.0)
            if why == Stopped.FULL:
                raise BadNetwork("more messages wait than a simulation can hold")
            backlog[second] = state.counts[1]
        done = int(min(state.counts[0], len(state.response)))
        return _told(state.ended[:done], state.response[:done], backlog, takeover)

    def _take_over(self) -> None:
        for kind, like in self._becomes:
            self._compiled.reroute(kind, like)
        for pool, (_, like) in zip(self._pools, self._becomes[-len(self._pools) :], strict=True):
            self._compiled.send_on(pool, like)


def _told(ended: Array, response: Array, backlog: Array, takeover: float) -> FailOver:
    seconds = len(backlog)
    second_of = np.minimum(ended.astype(int), seconds - 1)
    bounds = np.searchsorted(second_of, np.arange(seconds + 1))
    p95 = [
        float(np.percentile(response[low:high], 95)) if high > low else np.nan
        for low, high in pairwise(bounds)
    ]
    last = min(_WATCHED_S // 2, seconds // 4)
    growth = float(backlog[-1] - backlog[-1 - last]) / last
    grows = growth > _GROWING * len(ended) / seconds
    normal_again = None if grows else _normal_again(backlog, last, math.ceil(takeover))
    # what happens long after everything is as usual is of no interest
    shown = seconds if normal_again is None else min(_BEFORE_S + int(1.5 * normal_again) + _BEFORE_S, seconds)
    return FailOver(
        messages=np.diff(bounds).astype(float)[:shown],
        backlog=backlog[:shown],
        response_p95=np.array(p95)[:shown],
        takeover=takeover,
        normal_again=normal_again,
        growth=growth if grows else 0.0,
    )


def _normal_again(backlog: Array, last: int, takeover: int) -> float:
    """When the backlog, over some seconds, was first no higher than before the failure, or than it was in the
    end: a box with the work of both always has a higher one."""
    usual = max(backlog[_WINDOW_S:_BEFORE_S].max(), backlog[-last:].max())
    smooth = np.convolve(backlog, np.full(_WINDOW_S, 1 / _WINDOW_S), "same")[_BEFORE_S + takeover :]
    return float(takeover + np.argmax(smooth <= usual))


def _from_outside(model: Model) -> list[str]:
    return [one.name for one in model.classes if one.origin == Origin.OPEN]


def _renamed(model: Model, prefix: str) -> Model:
    def step(one: Step) -> Step:
        return replace(
            one,
            place=prefix + one.place if one.place else "",
            job_class=prefix + one.job_class if one.job_class else "",
        )

    return replace(
        model,
        places=[replace(place, name=prefix + place.name) for place in model.places],
        classes=[
            replace(one, name=prefix + one.name, steps=[step(each) for each in one.steps])
            for one in model.classes
        ],
    )
