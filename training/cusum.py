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

    periods: float = 0.0
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


class Excursion(Row):
    """Since a sum last was zero: how much it has grown, since when, and by how much the periods since then
    differ, as logarithms, from the baseline as it was."""

    sum: float = 0.0
    since: str | None = None
    mean_before: float = 0.0
    periods: int = 0
    shift: float = 0.0
    variance: float = 0.0

    def grown(self, at: str, by: float, value: float, sd: float, baseline: Baseline) -> Excursion:
        total = self.sum + by
        if total <= 0:
            return Excursion()
        return self.model_copy(update={"sum": total}).with_period(at, value, sd, baseline)

    def with_period(self, at: str, value: float, sd: float, baseline: Baseline) -> Excursion:
        before = self.mean_before if self.periods else baseline.mean
        return Excursion(
            sum=self.sum,
            since=self.since or at,
            mean_before=before,
            periods=self.periods + 1,
            shift=self.shift + (value - before) * sd,
            variance=self.variance + (baseline.scale * sd) ** 2,
        )
