"""The event loop itself: it goes on where it stopped, and refuses what it cannot do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from twin.queueing.network import BadNetwork, Network, cpu, delay, log, serial
from twin.queueing.solving import solve
from twin.simulation.compiling import MOST_JOBS, Compiled
from twin.simulation.engine import Stopped, why_stopped
from twin.simulation.model import Discipline, JobClass, Model, Origin, Place, give_back, take, visit
from twin.simulation.playing import model_of
from twin.simulation.running import Unstable, simulate

NETWORK = Network([cpu(0.01, 2), log(0.004, 3), delay("think", 0.02)], 9)


def played(stops: list[int]) -> Compiled:
    random = np.random.default_rng(5)
    compiled = Compiled(model_of(NETWORK), 3_000, random)
    for stop in stops:
        assert why_stopped(compiled.plan, compiled.state, random, stop, math.inf) == Stopped.ENOUGH_MESSAGES
    return compiled


def test_stopping_on_the_way_changes_nothing():
    whole, parts = played([3_000]).state, played([1, 2, 700, 1_999, 3_000]).state
    np.testing.assert_array_equal(whole.response, parts.response)
    np.testing.assert_array_equal(whole.service, parts.service)
    assert whole.clock[0] == parts.clock[0]


def test_it_stops_at_a_time():
    random = np.random.default_rng(5)
    compiled = Compiled(model_of(NETWORK), 1_000_000, random)
    assert why_stopped(compiled.plan, compiled.state, random, 1_000_000, 2.5) == Stopped.TIME
    assert compiled.state.clock[0] == 2.5
    assert compiled.state.ended[compiled.state.counts[0] - 1] <= 2.5


def test_a_closed_pool_holds_everybody_until_it_opens():
    steps = [take("door"), visit("cpu", 0.001), give_back("door")]
    model = Model(
        [Place("door", Discipline.HELD, 0), Place("cpu", Discipline.SHARED, 1)],
        [JobClass("messages", steps, Origin.OPEN, rate=100)],
    )
    random = np.random.default_rng(1)
    compiled = Compiled(model, 10_000, random, room=10_000)
    why_stopped(compiled.plan, compiled.state, random, 10_000, 10.0)
    assert compiled.state.counts[0] == 0
    waiting = compiled.state.counts[1]
    assert waiting > 900
    compiled.open_up("door", 2)
    why_stopped(compiled.plan, compiled.state, random, 10_000, 12.0)
    assert compiled.state.counts[0] > waiting


def test_who_all_wait_for_each_other_are_told():
    model = Model(
        [Place("door", Discipline.HELD, 0), Place("cpu", Discipline.SHARED, 1)],
        [JobClass("messages", [take("door"), visit("cpu", 0.001)], population=3)],
    )
    with pytest.raises(BadNetwork, match="waits"):
        simulate(model)


@pytest.mark.parametrize("offered", [101, 150, 10_000])
def test_an_unstable_load_is_told_with_its_growth(offered):
    """A disk that does 100 a second."""
    network = Network([cpu(0.001, 4), serial("disk", 0.01)], 10**6)
    found = simulate(model_of(network, 0, offered), messages=200_000)
    assert isinstance(found, Unstable)
    assert found.growth == pytest.approx(offered - 100, rel=0.02, abs=1)


def test_a_load_near_the_limit_is_not_unstable():
    network = Network([cpu(0.001, 4), serial("disk", 0.01)], 10**6)
    assert not isinstance(simulate(model_of(network, 0, 95), messages=50_000), Unstable)


@pytest.mark.parametrize(
    ("network", "offered", "reason"),
    [
        (Network([cpu(0.0, 4)], 5), None, "no station has a demand"),
        (Network([cpu(0.01, 4)], 0), None, "no customers fit in"),
        (Network([cpu(0.01, 4)], math.inf), None, "no end of customers"),
        (Network([cpu(-1.0, 4)], 5), None, "demand of cpu is -1"),
        (Network([cpu(0.01, 4)], 5), -3.0, "offered rate is -3"),
        (Network([cpu(0.01, 4)], 5), math.nan, "offered rate is nan"),
        (Network([cpu(0.01, 4)], MOST_JOBS + 1), None, "more than a simulation can hold"),
    ],
)
def test_nonsense_is_refused_with_a_reason(network, offered, reason):
    with pytest.raises(BadNetwork, match=reason):
        simulate(model_of(network, 0, offered))


def test_a_hundred_thousand_customers_are_no_trouble():
    network = Network([cpu(0.01, 4), delay("think", 1000.0)], 100_000)
    found = simulate(model_of(network), runs=2, messages=50_000)
    assert not isinstance(found, Unstable)
    assert found.throughput.value <= 1.05 * solve(network).throughput[0]
