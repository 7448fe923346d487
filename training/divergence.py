"""Whether a broker still is what the model says: a few probes in every period, and two sums that grow while
the probes keep to one side of what they used to say (CUSUM).

A period says one number: how far its probes lie off, as a logarithm, one wild probe among them not counting
for much. It is compared with all quiet periods before it, by Student's distribution, so that few quiet
periods make a careful detector and not a nervous one; what comes out is standard normal as long as nothing
changes and periods are normal and independent. For those the stated rate of false alarms holds, learned or
not. Tails like those of a t distribution with five degrees of freedom make it nearly twice as high, a
correlation of 0.3 between periods five times: leave time between them.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

from training.cusum import LEARNED, Baseline, Excursion, limit
from training.periods import Period
from twin.core.fields import Row

# on average at least so many quiet periods from one false alarm to the next
PERIODS_PER_FALSE_ALARM = 1000.0
# Half of the shift that is found soonest, in standard deviations of a period: two of them are 12% where a run
# has 10% noise and three probes make a period
REFERENCE = 1.0
_OUTER = NormalDist().inv_cdf(0.95)

Status = Literal["learning", "quiet", "diverged"]


class Alarm(Row):
    since: str
    found_at: str
    direction: Literal["slower", "faster"]
    periods: int
    percent: float
    percent_lo90: float
    percent_hi90: float

    def __str__(self) -> str:
        return (
            f"{self.direction} since {self.since}: {self.percent:+.0f}% "
            f"({self.percent_lo90:+.0f}% to {self.percent_hi90:+.0f}%) over {self.periods} periods"
        )


class Judged(Row):
    """The newest period: how far off, or why it does not count."""

    at: str
    left_out: str | None = None
    percent: float | None = None
    deviations: float | None = None


class State(Row):
    """All that is remembered of a broker, as plain data."""

    broker: str
    status: Status = "learning"
    learned: int = LEARNED
    periods_per_false_alarm: float = PERIODS_PER_FALSE_ALARM
    reference: float = REFERENCE
    counted: int = 0
    left_out: int = 0
    baseline: Baseline = Baseline()
    fall: Excursion = Excursion()
    rise: Excursion = Excursion()
    alarm: Alarm | None = None
    latest: Judged | None = None

    @property
    def limit(self) -> float:
        return limit(self.reference, self.periods_per_false_alarm)

    @property
    def noise_factor(self) -> float:
        """How many times as noisy as the model states runs have been while all was quiet."""
        return self.baseline.scale


def begun(broker: str, learned: int = LEARNED, **stated: float) -> State:
    """Nothing seen yet. Without periods to learn from, what the model states counts for as many."""
    if learned:
        return State(broker=broker, learned=learned, **stated)
    baseline = Baseline(periods=LEARNED, freedom=LEARNED, squares=LEARNED)
    return State(broker=broker, learned=0, status="quiet", baseline=baseline, **stated)


def renewed(state: State) -> State:
    """After a recalibration, or where a person says that the alarm was none: what is usual is learned
    anew."""
    return State(
        broker=state.broker,
        learned=state.learned or LEARNED,
        periods_per_false_alarm=state.periods_per_false_alarm,
        reference=state.reference,
        latest=state.latest,
    )


def updated(state: State, period: Period) -> State:
    if reason := period.left_out:
        judged = Judged(at=period.at, left_out=reason)
        return state.model_copy(update={"left_out": state.left_out + 1, "latest": judged})
    centre, sd = period.centre
    value = centre / sd
    off = state.baseline.deviations(value)
    judged = Judged(at=period.at, percent=_percent(centre), deviations=off)
    state = state.model_copy(update={"counted": state.counted + 1, "latest": judged})
    match state.status:
        case "learning":
            return _learning(state, value)
        case "diverged":
            return _farther(state, period.at, value, sd)
        case "quiet":
            return _compared(state, period.at, value, sd, off)


def _learning(state: State, value: float) -> State:
    baseline = state.baseline.with_period(value)
    status: Status = "quiet" if baseline.periods >= state.learned else "learning"
    return state.model_copy(update={"baseline": baseline, "status": status})


def _compared(state: State, at: str, value: float, sd: float, off: float) -> State:
    # no period alone fills a sum to overflowing
    rise, fall = (
        side.grown(min(sign * off - state.reference, state.limit), at, value, sd, state.baseline)
        for side, sign in ((state.rise, 1), (state.fall, -1))
    )
    if max(rise.sum, fall.sum) <= state.limit:
        baseline = state.baseline.with_usual(value)
        return state.model_copy(update={"rise": rise, "fall": fall, "baseline": baseline})
    sides = {"rise": rise.since_the_change()} if rise.sum > fall.sum else {"fall": fall.since_the_change()}
    (side,) = sides.values()
    alarm = _alarm(state, side, side.periods[0].at, at)
    return state.model_copy(update={"status": "diverged", "alarm": alarm} | sides)


def _farther(state: State, at: str, value: float, sd: float) -> State:
    """A diverged broker stays so until somebody does something; every period tells better by how much."""
    assert state.alarm is not None
    # the side that raised the alarm, whatever periods say since
    name = "fall" if state.fall.sum > state.rise.sum else "rise"
    side = getattr(state, name).with_period(at, value, sd, state.baseline)
    alarm = _alarm(state, side, state.alarm.since, state.alarm.found_at)
    return state.model_copy(update={name: side, "alarm": alarm})


def _alarm(state: State, side: Excursion, since: str, found_at: str) -> Alarm:
    shift, variance = side.shift
    # of the periods since, and of the baseline that they are compared with
    sd = math.sqrt(variance * (1 + len(side.periods) / state.baseline.periods))
    return Alarm(
        since=since,
        found_at=found_at,
        direction="slower" if shift < 0 else "faster",
        periods=len(side.periods),
        percent=_percent(shift),
        percent_lo90=_percent(shift - _OUTER * sd),
        percent_hi90=_percent(shift + _OUTER * sd),
    )


def _percent(logarithm: float) -> float:
    return 100 * math.expm1(logarithm)
