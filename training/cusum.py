"""Sums that tell when something has changed (CUSUM), compared with what was usual before."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.special import ndtr, ndtri, stdtr

from twin.core.fields import Row

# periods that only teach what is usual; what the model states as its noise counts for half as many
LEARNED = 8
_STATED = LEARNED / 2
# a period farther off than so many standard deviations teaches no more than one that far off
_USUAL = 3.5
# periods of an excursion that are remembered: a change that takes longer to find is a drift
_LONGEST = 30
# steps that a sum is cut into, and halvings of the range in which its limit lies
_STEPS = 100
_HALVINGS = 40
_HIGHEST = 50.0


@cache
def limit(reference: float, periods_per_false_alarm: float) -> float:
    """What one of two sums must exceed for an alarm, so that quiet periods, standard normal and independent,
    raise one so often on average. By a Markov chain over a sum cut into steps (Brook and Evans, 1972)."""
    low, high = 0.0, _HIGHEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _run_length(reference, middle) < periods_per_false_alarm:
            low = middle
        else:
            high = middle
    return high


def _run_length(reference: float, limit: float) -> float:
    """Periods until the first of both sums, each from zero, exceeds a limit."""
    width = 2 * limit / (2 * _STEPS - 1)
    apart = np.arange(_STEPS)[None, :] - np.arange(_STEPS)[:, None]
    at_most = ndtr((apart + 0.5) * width + reference)
    stays = at_most - ndtr((apart - 0.5) * width + reference)
    # whatever would fall below zero stays there
    stays[:, 0] = at_most[:, 0]
    one_sided = np.linalg.solve(np.eye(_STEPS) - stays, np.ones(_STEPS))[0]
    return float(one_sided) / 2


class Baseline(Row):
    """What quiet periods say, in standard deviations that the model states: their number and mean, and how
    much they scatter. Degrees of freedom and squares start from what is stated."""

    periods: int = 0
    mean: float = 0.0
    freedom: float = _STATED
    squares: float = _STATED

    @property
    def scale(self) -> float:
        """How many times as much periods differ as the model states."""
        return math.sqrt(self.squares / self.freedom)

    def deviations(self, value: float) -> float:
        """How far off a new period is, as a standard normal number; nothing can be far off nothing."""
        if not self.periods:
            return 0.0
        off = (value - self.mean) / (self.scale * math.sqrt(1 + 1 / self.periods))
        tail = max(float(stdtr(self.freedom, -abs(off))), 1e-300)
        return math.copysign(float(ndtri(tail)), off)

    def with_usual(self, value: float) -> Baseline:
        """With a period that nobody knows to be quiet."""
        reach = _USUAL * self.scale * math.sqrt(1 + 1 / self.periods)
        return self.with_period(self.mean + min(max(value - self.mean, -reach), reach))

    def with_period(self, value: float) -> Baseline:
        off, now = value - self.mean, self.periods + 1
        return Baseline(
            periods=now,
            mean=self.mean + off / now,
            freedom=self.freedom + (self.periods > 0),
            squares=self.squares + off**2 * self.periods / now,
        )


class Off(Row):
    """By how much a period differs from the baseline as it was, as a logarithm."""

    at: str
    shift: float
    variance: float


class Excursion(Row):
    """Since a sum last was zero: how much it has grown, the mean of the baseline then, and the periods."""

    sum: float = 0.0
    mean_before: float = 0.0
    periods: tuple[Off, ...] = ()

    def grown(self, by: float, at: str, value: float, sd: float, baseline: Baseline) -> Excursion:
        total = self.sum + by
        if total <= 0:
            return Excursion()
        return self.with_period(at, value, sd, baseline).model_copy(update={"sum": total})

    def with_period(self, at: str, value: float, sd: float, baseline: Baseline) -> Excursion:
        before = self.mean_before if self.periods else baseline.mean
        off = Off(at=at, shift=(value - before) * sd, variance=(baseline.scale * sd) ** 2)
        periods = (*self.periods, off)[-_LONGEST:]
        return Excursion(sum=self.sum, mean_before=before, periods=periods)

    def since_the_change(self) -> Excursion:
        """Without the periods by which chance had taken the sum from zero before anything changed: from the
        likeliest period on."""
        back = list(reversed(self.periods))
        shifts, variances = np.cumsum([one.shift for one in back]), np.cumsum([one.variance for one in back])
        one_way = np.maximum(shifts * np.sign(shifts[-1]), 0.0)
        periods = int(np.argmax(one_way**2 / variances)) + 1
        return self.model_copy(update={"periods": self.periods[-periods:]})

    @property
    def shift(self) -> tuple[float, float]:
        """The mean over the periods, and its variance."""
        number = len(self.periods)
        total = sum(one.shift for one in self.periods), sum(one.variance for one in self.periods)
        return total[0] / number, total[1] / number**2
