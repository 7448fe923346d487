"""Exact mean value analysis against closed forms and against another algorithm."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.queueing.mva import exact_mva


def solved(shared, single, think, population):
    """Throughput and residence times of one network; `shared` is a list of (demand, servers)."""
    column = np.array(shared, float).reshape(-1, 2)
    throughput, residence = exact_mva(
        column[:, :1],
        column[:, 1:],
        np.array(single, float).reshape(-1, 1),
        np.array([think], float),
        np.array([population], float),
    )
    return throughput[0], residence[:, 0]


def factors(demand, servers, population, unit):
    """Weight of each number of customers at a station that works min(j, servers) times as fast with j."""
    weights = [1.0]
    for j in range(1, population + 1):
        weights.append(weights[-1] * demand / unit / min(j, servers))
    return np.array(weights)


def convolved(shared, single, think, population):
    """Buzen's algorithm: normalising constants by convolution, which adds only positive numbers."""
    stations = [*shared, *((demand, 1.0) for demand in single)]
    # in the unit of the busiest station no weight grows without bound
    unit = max([demand / servers for demand, servers in stations] + [think / population])
    weights = [factors(demand, servers, population, unit) for demand, servers in stations]
    outside = factors(think, math.inf, population, unit)

    def constants(left_out=None):
        total = outside
        for at, one in enumerate(weights):
            if at != left_out:
                total = np.convolve(total, one)[: population + 1]
        return total

    whole = constants()
    throughput = whole[-2] / whole[-1] / unit
    customers = [
        np.dot(np.arange(population + 1) * one, constants(at)[::-1]) / whole[-1]
        for at, one in enumerate(weights)
    ]
    return throughput, np.array(customers) / throughput


def repaired(machines, demand, servers, think):
    """Machines that break after `think` and are repaired by `servers`: a birth-death chain."""
    chance = [1.0]
    for broken in range(1, machines + 1):
        chance.append(chance[-1] * (machines - broken + 1) / think * demand / min(broken, servers))
    running = sum((machines - broken) * one for broken, one in enumerate(chance)) / sum(chance)
    return running / think


@pytest.mark.parametrize("population", [1, 2, 7, 100])
@pytest.mark.parametrize("stations", [1, 2, 5])
def test_balanced_single_servers(population, stations):
    throughput, residence = solved([], [0.3] * stations, 0, population)
    assert throughput == pytest.approx(population / (0.3 * (population + stations - 1)), rel=1e-9)
    assert residence == pytest.approx(np.full(stations, population / stations / throughput), rel=1e-9)


@pytest.mark.parametrize("servers", [0.4, 1, 1.5, 2, 3.7, 8, 200])
@pytest.mark.parametrize("population", [1, 3, 20, 150])
def test_machine_repairman(population, servers):
    throughput, _ = solved([(0.5, servers)], [], 2.0, population)
    assert throughput == pytest.approx(repaired(population, 0.5, servers, 2.0), rel=1e-9)


@pytest.mark.parametrize("population", [1, 4, 1000])
def test_delay_alone(population):
    throughput, residence = solved([], [], 0.25, population)
    assert throughput == pytest.approx(population / 0.25, rel=1e-9)
    assert residence.size == 0


def test_one_server_is_the_same_told_either_way():
    assert solved([(0.2, 1.0), (0.1, 1.0)], [], 0.3, 12)[0] == pytest.approx(
        solved([], [0.2, 0.1], 0.3, 12)[0], rel=1e-12
    )


def test_as_many_servers_as_customers_are_a_delay():
    assert solved([(0.2, 12.0)], [0.1], 0.3, 12)[0] == pytest.approx(solved([], [0.1], 0.5, 12)[0], rel=1e-12)


@pytest.mark.parametrize("servers", [4.0, 8.0, 7.5, 0.5])
@pytest.mark.parametrize("think", [0.0, 1e-6, 1.0])
def test_saturated_servers(servers, think):
    """Where the textbook recursion subtracts nearly equal numbers: 200 customers on a few servers."""
    shared, single = [(1.0, servers)], [0.01]
    throughput, residence = solved(shared, single, think, 200)
    expected, times = convolved(shared, single, think, 200)
    assert throughput == pytest.approx(expected, rel=1e-9)
    assert throughput == pytest.approx(servers, rel=1e-6)
    assert residence == pytest.approx(times, rel=1e-9)


def test_several_saturated_stations_at_once():
    shared, single = [(0.8, 8.0), (0.4, 4.0), (0.25, 2.5)], [0.1]
    throughput, residence = solved(shared, single, 0.2, 200)
    expected, times = convolved(shared, single, 0.2, 200)
    assert throughput == pytest.approx(expected, rel=1e-9)
    assert residence == pytest.approx(times, rel=1e-9)


demands = st.floats(1e-3, 1.0)
servers = st.one_of(st.integers(1, 12).map(float), st.floats(0.2, 12.0))


@settings(max_examples=150, deadline=None)
@given(
    shared=st.lists(st.tuples(demands, servers), min_size=0, max_size=4),
    single=st.lists(demands, min_size=1, max_size=3),
    think=st.one_of(st.just(0.0), st.floats(1e-3, 10.0)),
    population=st.integers(1, 60),
)
def test_any_network_against_convolution(shared, single, think, population):
    throughput, residence = solved(shared, single, think, population)
    expected, times = convolved(shared, single, think, population)
    assert throughput == pytest.approx(expected, rel=1e-9)
    assert residence == pytest.approx(times, rel=1e-9)


def test_configurations_do_not_mix():
    """More of them than are worked on at once, with populations and servers of all sizes."""
    draw = np.random.default_rng(7)
    count = 150
    shared, single = draw.uniform(0.01, 1, (2, count)), draw.uniform(0.01, 1, (1, count))
    many, think = draw.uniform(0.3, 9, (2, count)), draw.uniform(0, 2, count)
    population = draw.integers(1, 40, count).astype(float)
    together, times = exact_mva(shared, many, single, think, population)
    for at in range(count):
        stations = list(zip(shared[:, at], many[:, at], strict=True))
        alone, residence = solved(stations, single[:, at], think[at], population[at])
        assert together[at] == pytest.approx(alone, rel=1e-12)
        assert times[:, at] == pytest.approx(residence, rel=1e-12)


def test_no_configurations():
    throughput, residence = exact_mva(*(np.empty((1, 0)) for _ in range(3)), np.empty(0), np.empty(0))
    assert throughput.shape == (0,)
    assert residence.shape == (2, 0)
