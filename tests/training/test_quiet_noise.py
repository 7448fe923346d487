"""Real noise of a broker that nobody touched, replayed as hours; and the same hours with the broker slowed.

The recording holds probes of a NATS server, three in each of 72 periods, beside what the twin predicted. They
were measured one right after the other, while the speed of the virtual machine wandered within a minute or
so: for periods a minute apart they are replayed in any order. In the order in which they came they are not
quiet: one alarm, of 12%, in the 23rd period.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from training.cusum import LEARNED
from training.divergence import begun, updated
from training.periods import Period, Probe

RECORDED = Path(__file__).with_name("recordings") / "quiet-nats.csv"
SLOWED = 0.7
FOUND_WITHIN = 3
# periods before the change, and hours that are replayed
QUIET, HOURS = 20, 60


def number(text):
    return float(text) if text else None


@pytest.fixture(scope="module")
def periods():
    found: dict[str, list[Probe]] = {}
    with RECORDED.open() as file:
        for row in csv.DictReader(file):
            probe = Probe(
                configuration_id=row["configuration_id"],
                measured=number(row["measured_msgs_per_s"]),
                predicted=number(row["predicted_msgs_per_s"]),
                sd=number(row["sd"]),
                scatter=number(row["scatter"]),
            )
            found.setdefault(row["period"], []).append(probe)
    return [Period(at=at, probes=tuple(probes)) for at, probes in found.items()]


def slowed(period):
    return period.model_copy(
        update={
            "probes": tuple(
                one.model_copy(update={"measured": one.measured and SLOWED * one.measured})
                for one in period.probes
            )
        }
    )


def watched(periods):
    """The number of the period in which it alarmed, from 1, or None."""
    state = begun("NATS")
    for number, one in enumerate(periods, start=1):
        state = updated(state, one)
        if state.alarm is not None:
            return number
    return None


def hours(periods):
    for seed in range(HOURS):
        yield [periods[at] for at in np.random.default_rng(seed).permutation(len(periods))]


def test_an_hour_of_quiet_raises_an_alarm_as_seldom_as_stated(periods):
    """One in 1,000 periods is one hour in seventeen."""
    assert len(periods) >= LEARNED + 60
    alarmed = sum(watched(hour[: LEARNED + 60]) is not None for hour in hours(periods))
    assert alarmed / HOURS <= 0.06


def test_a_broker_slowed_by_thirty_percent_is_found_within_three_periods(periods):
    found = []
    for hour in hours(periods):
        quiet, rest = hour[:QUIET], hour[QUIET : QUIET + FOUND_WITHIN]
        if watched(quiet) is None:
            found.append(watched([*quiet, *map(slowed, rest)]) is not None)
    assert len(found) > 0.9 * HOURS
    assert sum(found) / len(found) >= 0.95
