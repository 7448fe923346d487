"""Runs of a model, again and again: means and percentiles with 95% intervals.

Every run starts empty or with everybody at the start, which is not how a busy system looks: its first tenth
is left out. Whether that was enough is seen over all runs: the two halves of the rest must not differ by more
than chance. The runs are independent, so their means scatter as Student's t says, whatever happens inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from twin.queueing.network import Array, BadNetwork
from twin.simulation.compiling import Compiled
from twin.simulation.engine import Stopped, why_stopped
from twin.simulation.model import Discipline, Model, Origin

PERCENTILES = (50, 90, 95, 99)
# a run is judged, and may be interrupted, after each
_BLOCKS = 40
_WARM_UP = _BLOCKS // 10
# the halves of what is left may differ by so many standard errors
_ALIKE = 3.0
_CONFIDENCE = 0.95
_FEWEST_MESSAGES = 1_000
MOST_MESSAGES = 20_000_000
# from outside, waiting or in service; beyond it a load is not sustained
_ROOM = 100_000
# what a backlog must gain per message, in each of a run's last three quarters, to be called growing
_GROWTH = 0.005

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Estimate:
    """A mean over the runs, and how far its 95% interval reaches either way."""

    value: float
    half_width: float

    @property
    def low(self) -> float:
        return self.value - self.half_width

    @property
    def high(self) -> float:
        return self.value + self.half_width

    def times(self, factor: float) -> Estimate:
        return Estimate(self.value * factor, self.half_width * factor)

    def covers(self, truth: float) -> bool:
        return self.low <= truth <= self.high


@dataclass(frozen=True)
class Simulated:
    """A steady state. Times in seconds; classes and stations by name."""

    throughput: Estimate
    response: Estimate
    percentiles: dict[int, Estimate]
    class_throughput: dict[str, Estimate]
    class_response: dict[str, Estimate]
    utilisation: dict[str, Estimate]
    runs: int
    messages: int
    # the share of the runs that was left out at their beginning, and whether that was enough
    warm_up: float
    settled: bool


@dataclass(frozen=True)
class Unstable:
    """More comes in than goes out: the backlog grows at this rate for as long as the load lasts."""

    offered: float
    served: float

    @property
    def growth(self) -> float:
        return self.offered - self.served


def simulate(
    model: Model, *, seed: int = 1, runs: int = 10, messages: int = 50_000, progress: Progress | None = None
) -> Simulated | Unstable:
    """`messages` per run. The same seed gives the same figures."""
    if runs < 2:
        raise BadNetwork(f"an interval needs two runs, not {runs}")
    if not _FEWEST_MESSAGES <= messages <= MOST_MESSAGES:
        raise BadNetwork(f"messages per run are {messages}, not {_FEWEST_MESSAGES} to {MOST_MESSAGES}")
    found = []
    for number, child in enumerate(np.random.SeedSequence(seed).spawn(runs)):
        one = _run(model, np.random.default_rng(child), messages)
        if isinstance(one, Unstable):
            return one
        found.append(one)
        if progress is not None:
            progress(number + 1, runs)
    return _summary(model, found, messages)


@dataclass(frozen=True)
class _Run:
    throughput: float
    response: float
    percentiles: Array
    class_throughput: Array
    class_response: Array
    utilisation: dict[str, float]
    # by how much the mean response of its second half exceeds that of its first
    drift: float


def _run(model: Model, random: np.random.Generator, messages: int) -> _Run | Unstable:
    offered = sum(one.rate for one in model.classes if one.origin == Origin.OPEN)
    compiled = Compiled(model, messages, random, room=_room(model, messages))
    state = compiled.state
    ends = np.linspace(0, messages, _BLOCKS + 1).astype(int)
    clock, inside = np.zeros(_BLOCKS + 1), np.zeros(_BLOCKS + 1)
    service = np.zeros((_BLOCKS + 1, len(state.service)))
    for block, end in enumerate(ends[1:], 1):
        why = why_stopped(compiled.plan, state, random, int(end), np.inf)
        if why == Stopped.STUCK:
            raise BadNetwork("everybody waits for somebody else: nothing moves")
        clock[block], inside[block] = state.clock[0], state.counts[1]
        service[block] = compiled.service()
        if why == Stopped.FULL:
            return Unstable(offered, float(state.counts[0] / state.clock[0]))
    if offered and _grows(inside, messages):
        half = _BLOCKS // 2
        served = (ends[-1] - ends[half]) / (clock[-1] - clock[half])
        return Unstable(offered, float(served))
    first = _WARM_UP
    start, seconds = ends[first], clock[-1] - clock[first]
    kept, of = state.response[start:], state.message_class[start:]
    half = len(kept) // 2
    counts = np.bincount(of, minlength=len(model.classes))
    sums = np.bincount(of, weights=kept, minlength=len(model.classes))
    # a force is one, however many it is for
    servers = np.where(compiled.plan.discipline == Discipline.GROUPED, 1.0, compiled.plan.servers)
    return _Run(
        throughput=(messages - start) / seconds,
        response=float(kept.mean()),
        percentiles=np.percentile(kept, PERCENTILES),
        class_throughput=counts / seconds,
        class_response=np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0),
        utilisation=compiled.mean_by_name(
            lambda k: (service[-1, k] - service[first, k]) / seconds / servers[k]
        ),
        drift=float(kept[half:].mean() - kept[:half].mean()),
    )


def _room(model: Model, messages: int) -> int:
    """For jobs from outside, and those that are left behind, which pools keep within bounds."""
    pools = sum(place.servers for place in model.places if np.isfinite(place.servers))
    behind = any(one.origin == Origin.LEFT_BEHIND for one in model.classes)
    opened = any(one.origin == Origin.OPEN for one in model.classes)
    return int((pools if behind else 0) + (min(_ROOM, messages) if opened else 0))


def _grows(inside: Array, messages: int) -> bool:
    quarter, half = len(inside) // 4, len(inside) // 2
    gains = [
        inside[half] - inside[quarter],
        inside[half + quarter] - inside[half],
        inside[-1] - inside[half + quarter],
    ]
    return bool(min(gains) > _GROWTH * messages / 4)


def _summary(model: Model, found: Sequence[_Run], messages: int) -> Simulated:
    counted = [c for c, one in enumerate(model.classes) if one.origin != Origin.LEFT_BEHIND]
    names = {c: model.classes[c].name for c in counted}
    return Simulated(
        throughput=estimate([one.throughput for one in found]),
        response=estimate([one.response for one in found]),
        percentiles={
            share: estimate([one.percentiles[at] for one in found]) for at, share in enumerate(PERCENTILES)
        },
        class_throughput={names[c]: estimate([one.class_throughput[c] for one in found]) for c in counted},
        class_response={names[c]: estimate([one.class_response[c] for one in found]) for c in counted},
        utilisation={
            name: estimate([one.utilisation[name] for one in found]) for name in found[0].utilisation
        },
        runs=len(found),
        messages=messages,
        warm_up=_WARM_UP / _BLOCKS,
        settled=_alike([one.drift for one in found]),
    )


def _alike(drifts: Sequence[float]) -> bool:
    error = float(np.std(drifts, ddof=1)) / np.sqrt(len(drifts))
    return bool(abs(float(np.mean(drifts))) <= _ALIKE * error or error == 0)


def estimate(values: Sequence[float]) -> Estimate:
    error = float(np.std(values, ddof=1)) / np.sqrt(len(values))
    reach = float(stdtrit(len(values) - 1, (1 + _CONFIDENCE) / 2))
    return Estimate(float(np.mean(values)), reach * error)
