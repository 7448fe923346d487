"""Steady states against closed forms: what the formulas know exactly, the simulator must find."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.queueing.multiclass import solve_classes
from twin.queueing.network import Limit, Locks, Network, Station, cpu, delay, disk, log, pipe, serial
from twin.queueing.solving import at_offered_rate, solve
from twin.simulation.model import Discipline, JobClass, Model, Place, visit
from twin.simulation.playing import model_of
from twin.simulation.running import Estimate, Simulated, simulate

ENDLESS = 10**6


def steady(network: Network, offered: float | None = None, **how: float) -> Simulated:
    variation = how.pop("variation", 1.0)
    found = simulate(model_of(network, 0, offered, variation), **{"messages": 20_000} | how)
    assert isinstance(found, Simulated)
    return found


def near(found: Estimate, truth: float) -> bool:
    """Twice the 95% interval: one in some ten thousand is farther off by chance."""
    return abs(found.value - truth) <= 2 * found.half_width


PRODUCT_FORM = {
    "processors and a disk": Network([cpu(0.01, 4), serial("disk", 0.003)], 20),
    "two and a half processors": Network([cpu(0.01, 2.5), serial("disk", 0.003), delay("think", 0.1)], 30),
    "one customer": Network([cpu(0.01, 4), pipe(1000, 1e5), delay("think", 0.01)], 1),
    "a pool of threads": Network([cpu(0.01, 8), Station("threads", "serial", 0.02, servers=3)], 12),
    "three queues": Network([cpu(0.004, 1), serial("lock", 0.003), pipe(100, 1e5)], 7),
}


@pytest.mark.parametrize("network", PRODUCT_FORM.values(), ids=PRODUCT_FORM)
def test_closed_networks_agree_with_exact_mean_value_analysis(network):
    found, exact = steady(network), solve(network)
    assert near(found.throughput, exact.throughput[0])
    assert near(found.response, exact.response[0])
    for station, busy in zip(network.stations, exact.utilisation[:, 0], strict=True):
        if station.kind != "delay":
            assert near(found.utilisation[station.name], busy)


def test_the_interval_covers_the_exact_rate_and_time_as_often_as_it_says():
    """95% of 200 seeds, within what chance leaves: 92 to 98%."""
    network = Network([cpu(0.01, 2), serial("disk", 0.003), delay("think", 0.02)], 6)
    exact = solve(network)
    found = [steady(network, seed=seed, messages=2_000) for seed in range(200)]
    rates = np.mean([one.throughput.covers(exact.throughput[0]) for one in found])
    times = np.mean([one.response.covers(exact.response[0]) for one in found])
    assert 0.92 <= rates <= 0.98
    assert 0.92 <= times <= 0.98


def test_classes_that_share_processors_agree_with_exact_analysis():
    demands = np.array([[0.010, 0.002], [0.004, 0.006], [0.02, 0.001]])
    population = [3, 4, 2]
    model = Model(
        [Place("cpu", Discipline.SHARED, 2), Place("bus", Discipline.SHARED, 1)],
        [
            JobClass(f"class {c}", [visit("cpu", work), visit("bus", moved)], population=population[c])
            for c, (work, moved) in enumerate(demands)
        ],
    )
    exact = solve_classes(demands, np.array([2.0, 1.0]), np.zeros(3), population)
    assert exact.exact
    found = simulate(model, messages=30_000)
    assert isinstance(found, Simulated)
    for c in range(3):
        assert near(found.class_throughput[f"class {c}"], exact.throughput[c])
        assert near(found.class_response[f"class {c}"], exact.residence[c].sum())


@pytest.mark.parametrize("load", [0.2, 0.6, 0.8])
def test_open_queues_agree_with_theory_and_so_do_their_percentiles(load):
    found = steady(Network([serial("one", 0.01)], ENDLESS), load / 0.01)
    response = 0.01 / (1 - load)
    assert near(found.response, response)
    for share, value in found.percentiles.items():
        assert near(value, -response * math.log(1 - share / 100))


def test_open_queues_with_several_servers_agree_with_theory():
    network = Network([cpu(0.01, 4), serial("disk", 0.002)], ENDLESS)
    assert near(steady(network, 280).response, at_offered_rate(network, 280).response[0])


@pytest.mark.parametrize("variation", [0.0, 0.5, 2.0])
def test_the_variation_of_service_times_counts_as_pollaczek_and_khinchine_say(variation):
    load, service = 0.6, 0.01
    found = steady(Network([serial("one", service)], ENDLESS), load / service, variation=variation)
    waiting = load * service * (1 + variation**2) / 2 / (1 - load)
    assert near(found.response, service + waiting)


@pytest.mark.parametrize("sharing", [1, 2, 4, 20])
@pytest.mark.parametrize("load", [0.1, 0.5, 0.8])
def test_group_commit_agrees_with_the_theory_of_bulk_service(sharing, load):
    network = Network([log(0.01, sharing)], ENDLESS)
    offered = load * sharing / 0.01
    found = steady(network, offered, messages=40_000)
    assert near(found.response, at_offered_rate(network, offered).response[0])


def test_one_force_carries_all_who_wait():
    """Twenty commits and nothing else: those in a force come back behind those who waited for the next."""
    assert steady(Network([log(0.01, 20), delay("work", 1e-6)], 20), variation=0.0).throughput.value == (
        pytest.approx(20 / 2 / 0.01)
    )
    limited = Network([log(0.01, 4), delay("work", 1e-6)], 20)
    assert near(steady(limited).throughput, 4 / 0.01)


def test_writes_meet_on_the_disks_of_a_stripe():
    """A visit to one of two disks by chance is, in the mean, half a visit to each of them."""
    striped = Network([cpu(0.004, 2), disk(0.01, 2)], 6)
    halves = Network([cpu(0.004, 2), disk(0.005, name="one"), disk(0.005, name="other")], 6)
    found = steady(striped)
    assert near(found.throughput, solve(halves).throughput[0])
    assert found.throughput.value < solve(striped).throughput[0]


def test_a_lock_is_held_over_the_write():
    """Locks that share one disk write one after the other; with disks of their own they do not wait."""

    def held(count: int, disks: float) -> Network:
        station = Station("log", "log", 0.01, locks=Locks(count, 0.01, disks))
        return Network([cpu(0.001, 64), station], 6)

    one_disk = solve(Network([cpu(0.001, 64), serial("disk", 0.01)], 6)).throughput[0]
    assert near(steady(held(1, math.inf)).throughput, one_disk)
    assert near(steady(held(3, 1)).throughput, one_disk)
    # two customers to a lock, three of them
    pair = solve(Network([cpu(0.001, 64), serial("own log", 0.01)], 2)).throughput[0]
    assert near(steady(held(3, math.inf)).throughput, 3 * pair)


def test_work_beside_is_a_ceiling():
    network = Network([cpu(0.01, 4, background=0.008), Station("clients", "pipe", 0.0, 0.02)], 8)
    found = steady(network)
    assert found.throughput.value == pytest.approx(50, rel=0.01)
    assert found.utilisation["cpu"].value == pytest.approx(50 * 0.018 / 4, rel=0.02)


def test_a_limit_lets_in_only_so_many():
    few = Network([cpu(0.01, 4), delay("think", 0.1)], 50, limits=[Limit("memory", 100, 500)])
    assert near(steady(few).throughput, solve(Network(few.stations, 5)).throughput[0])


def test_messages_from_outside_wait_for_a_free_customer():
    """With one customer the whole way is one queue, whatever the stations could do side by side."""
    network = Network([cpu(0.006, 4), delay("commit", 0.004)], 1)
    found = steady(network, 70, variation=0.0)
    waiting = 0.7 * 0.01 / 2 / (1 - 0.7)
    assert near(found.response, 0.01 + waiting)


def test_a_run_is_reproducible_by_its_seed():
    network = PRODUCT_FORM["processors and a disk"]
    assert steady(network, seed=3) == steady(network, seed=3)
    assert steady(network, seed=3) != steady(network, seed=4)


networks = st.builds(
    lambda work, servers, write, think, customers: Network(
        [cpu(work, servers), serial("disk", write), delay("think", think)], customers
    ),
    st.floats(0.001, 0.1),
    st.floats(1, 8),
    st.floats(0.001, 0.1),
    st.floats(0.0, 1.0),
    st.integers(1, 40),
)


@settings(max_examples=15, deadline=None)
@given(network=networks)
def test_the_laws_of_little_and_of_utilisation_hold(network):
    found = steady(network, messages=4_000, runs=4)
    population = float(network.population)
    assert found.throughput.value * found.response.value == pytest.approx(population, rel=0.02)
    assert all(busy.value <= 1 + 1e-9 for busy in found.utilisation.values())
    work = network.rows("demand")[0, 0]
    assert found.utilisation["cpu"].value == pytest.approx(
        found.throughput.value * work / network.rows("servers")[0, 0], rel=0.1
    )
