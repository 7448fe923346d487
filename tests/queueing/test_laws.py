"""Laws that every solved network keeps, whatever its stations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.queueing.approximation import approximate_mva
from twin.queueing.bounds import capacity, lower_bound, upper_bound
from twin.queueing.mva import exact_mva
from twin.queueing.network import BadNetwork, Limit, Network, Station, cpu, delay, disk, log, pipe, serial
from twin.queueing.solving import at_offered_rate, held_at, solve

work = st.floats(1e-3, 1.0)
maybe = st.one_of(st.just(0.0), work)
many = st.one_of(st.integers(1, 16).map(float), st.floats(0.3, 16.0))
laws = settings(max_examples=100, deadline=None)


@st.composite
def networks(draw, background=maybe):
    return Network(
        [
            cpu(draw(work), draw(many), draw(background)),
            serial("thread", draw(maybe)),
            log(draw(maybe), draw(many)),
            pipe(draw(maybe), 1.0, draw(background)),
            delay("think", draw(maybe) * 5),
        ],
        float(draw(st.integers(1, 50))),
    )


def changed(network, name, **parts):
    """The same network with one station of it told anew."""
    stations = [Station(**{**vars(one), **parts}) if one.name == name else one for one in network.stations]
    return Network(stations, network.population, network.customers, network.limits)


def rate(network):
    return float(solve(network).throughput[0])


@laws
@given(networks())
def test_little(network):
    """Customers are the rate times the time of a cycle, waiting and delays included."""
    solution = solve(network)
    assert solution.throughput * solution.response == pytest.approx(network.population, rel=1e-6)
    assert solution.queue.sum(axis=0) == pytest.approx(network.population, rel=1e-6)


@laws
@given(networks())
def test_nobody_works_more_than_always(network):
    solution = solve(network)
    assert (solution.utilisation[network.queueing] <= 1 + 1e-9).all()
    assert (solution.headroom >= -1e-9).all()
    assert (solution.residence >= network.rows("demand") * (1 - 1e-9)).all()


@laws
@given(networks())
def test_bounds_bracket_the_rate(network):
    assert lower_bound(network) <= solve(network).throughput * (1 + 1e-9)
    assert solve(network).throughput <= upper_bound(network) * (1 + 1e-9)


@laws
@given(networks(), st.sampled_from(["cpu", "thread", "log", "network", "think"]), work)
def test_more_demand_is_never_faster(network, name, more):
    station = next(one for one in network.stations if one.name == name)
    assert rate(changed(network, name, demand=station.demand + more)) <= rate(network) * (1 + 1e-9)


@laws
@given(networks(), st.sampled_from(["cpu", "network"]), work)
def test_more_background_is_never_faster(network, name, more):
    station = next(one for one in network.stations if one.name == name)
    assert rate(changed(network, name, background=station.background + more)) <= rate(network) * (1 + 1e-9)


@laws
@given(networks(), st.sampled_from(["cpu", "log"]), st.floats(0.01, 4.0))
def test_more_servers_are_never_slower(network, name, more):
    station = next(one for one in network.stations if one.name == name)
    assert rate(changed(network, name, servers=station.servers + more)) >= rate(network) * (1 - 1e-9)


@laws
@given(networks(), st.integers(1, 20))
def test_more_customers_are_never_slower(network, more):
    crowd = Network(network.stations, network.population + more)
    assert rate(crowd) >= rate(network) * (1 - 1e-9)


@laws
@given(networks(background=st.just(0.0)), st.floats(1e-3, 1e3))
def test_the_unit_of_time_does_not_matter(network, unit):
    scaled = [Station(**{**vars(one), "demand": one.demand * unit}) for one in network.stations]
    assert rate(Network(scaled, network.population)) * unit == pytest.approx(rate(network), rel=1e-9)


def test_background_takes_servers_away():
    """One customer on two processors: at rate x, x b of them are busy with what nobody waits for."""
    assert rate(Network([cpu(0.1, 2.0, background=0.05)], 1.0)) == pytest.approx(10, rel=1e-9)
    # less than one is left: x d = 2 - x b
    assert rate(Network([cpu(0.1, 2.0, background=0.15)], 1.0)) == pytest.approx(2 / 0.25, rel=1e-9)


def test_a_ceiling_holds_and_customers_wait_in_front_of_it():
    network = Network([cpu(0.1, 4.0), pipe(0.0, 1.0, 0.2)], 4.0)
    solution = solve(network)
    assert solution.throughput == pytest.approx(5, rel=1e-9)
    assert solution.bottleneck == ["network"]
    assert solution.residence[1] == pytest.approx(4 / 5 - 0.1, rel=1e-6)


def test_too_few_customers_are_the_bottleneck():
    stations = [cpu(0.1, 4.0), delay("think", 1.0)]
    assert solve(Network(stations, 2.0, "engines")).bottleneck == ["engines"]
    assert solve(Network(stations, 200.0, "engines")).bottleneck == ["cpu"]


def test_configurations_are_solved_side_by_side():
    demands, servers, customers = (
        np.array([0.1, 0.2, 0.3]),
        np.array([1.0, 2.5, 4.0]),
        np.array([5.0, 1.0, 9.0]),
    )
    together = solve(Network([cpu(demands, servers, 0.01), delay("think", 0.5)], customers))
    for at in range(3):
        alone = Network([cpu(demands[at], servers[at], 0.01), delay("think", 0.5)], customers[at])
        assert together.throughput[at] == pytest.approx(rate(alone), rel=1e-9)


single = st.lists(work, min_size=1, max_size=4)
think = st.one_of(st.just(0.0), st.floats(1e-3, 20.0))


def compared(demands, servers, think, population):
    """The approximate rate over the exact one."""
    demands, servers = np.array(demands)[:, None], np.array(servers, float)[:, None]
    outside, customers = np.array([think]), np.array([float(population)])
    exact, _ = exact_mva(demands, servers, demands[:0], outside, customers)
    approximate, residence = approximate_mva(demands, servers, outside, customers)
    assert approximate * (outside + residence.sum(axis=0)) == pytest.approx(customers, rel=1e-6)
    return float(approximate[0] / exact[0])


@laws
@given(single, think, st.integers(1, 60))
def test_approximation_of_single_servers_is_at_most_8_percent_low(demands, think, population):
    assert 0.92 <= compared(demands, [1] * len(demands), think, population) <= 1 + 1e-9


@laws
@given(st.lists(st.tuples(work, many), min_size=1, max_size=3), think, st.integers(1, 60))
def test_approximation_of_many_servers_is_at_most_a_quarter_low(stations, think, population):
    """Worst where there are as many customers as servers and none of them ever waits."""
    demands, servers = zip(*stations, strict=True)
    assert 0.74 <= compared(demands, servers, think, population) <= 1 + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(work, many), min_size=1, max_size=2), think, st.integers(500, 1000))
def test_approximation_of_crowds_is_close(stations, think, population):
    demands, servers = zip(*stations, strict=True)
    assert compared(demands, servers, think, population) == pytest.approx(1, abs=0.05)


def test_large_networks_are_approximated_without_a_step():
    """Just inside and just beyond what is solved exactly."""
    stations = [cpu(0.01, 8.0), serial("lock", 0.002), delay("think", 3.0)]
    exact, approximate = (rate(Network(stations, customers)) for customers in (2000.0, 2001.0))
    assert approximate == pytest.approx(exact, rel=0.05)


def erlang_c(load, servers):
    """Chance to wait in an M/M/m queue."""
    blocked = 1.0
    for j in range(1, servers + 1):
        blocked = load * blocked / (j + load * blocked)
    return blocked / (1 - load / servers * (1 - blocked))


@laws
@given(st.integers(1, 64), st.floats(0.01, 0.99), work)
def test_open_queue_is_erlangs(servers, busy, demand):
    offered = busy * servers / demand
    solution = at_offered_rate(Network([cpu(demand, float(servers))], 1.0), offered)
    waiting = erlang_c(busy * servers, servers) * demand / (servers * (1 - busy))
    assert solution.response == pytest.approx(demand + waiting, rel=1e-9)
    assert solution.throughput == pytest.approx(offered)
    assert not solution.saturated.any()


@laws
@given(st.floats(0.01, 0.99), work)
def test_open_single_server(busy, demand):
    solution = at_offered_rate(Network([serial("thread", demand)], 1.0), busy / demand)
    assert solution.response == pytest.approx(demand / (1 - busy), rel=1e-9)


@laws
@given(st.floats(0.2, 8.0), st.floats(0.05, 0.9), work)
def test_open_queue_with_part_of_a_server(servers, busy, demand):
    """The birth-death chain itself, far into its tail."""
    chance, customers, weight = 1.0, 0.0, 1.0
    for j in range(1, 1000):
        weight *= busy * servers / min(j, servers)
        chance, customers = chance + weight, customers + j * weight
    offered = busy * servers / demand
    solution = at_offered_rate(Network([disk(demand, servers)], 1.0), offered)
    assert solution.queue == pytest.approx(customers / chance, rel=1e-6)


@laws
@given(networks(), st.floats(0.01, 0.99))
def test_an_offered_rate_that_can_be_sustained_is_kept(network, share):
    offered = share * float(capacity(network).min(axis=0)[0])
    solution = at_offered_rate(network, offered)
    assert solution.throughput == pytest.approx(offered)
    assert np.isfinite(solution.response).all()
    assert (solution.residence >= network.rows("demand") * (1 - 1e-9)).all()
    assert (solution.utilisation[network.queueing] <= share + 1e-9).all()


@laws
@given(networks(), st.floats(1.0, 100.0))
def test_an_offered_rate_that_is_too_much_is_cut(network, times):
    possible = float(capacity(network).min(axis=0)[0])
    solution = at_offered_rate(network, times * possible)
    assert solution.saturated.all()
    assert solution.throughput == pytest.approx(possible)
    assert np.isinf(solution.response).all()


def test_background_slows_an_open_queue():
    """Half of two servers are taken: what is left is one."""
    solution = at_offered_rate(Network([cpu(0.05, 2.0, background=0.1)], 1.0), 10.0)
    assert solution.response == pytest.approx(0.05 / (1 - 0.5), rel=1e-9)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_who_comes_waits_for_the_only_customer(share):
    """One customer is one server, whatever its stations could do side by side."""
    network = Network([cpu(0.006, 4.0), delay("commit", 0.004)], 1.0)
    closed = solve(network)
    found = held_at(share * closed.throughput, closed)
    assert found.response == pytest.approx(0.01 / (1 - share))


@laws
@given(networks(), st.floats(0.01, 0.99))
def test_nobody_waits_longer_at_a_station_than_when_all_are_under_way(network, share):
    closed = solve(network)
    found = held_at(share * closed.throughput, closed)
    assert (found.residence <= closed.residence * (1 + 1e-9)).all()
    assert (found.response >= network.rows("demand").sum(axis=0) * (1 - 1e-9)).all()
    assert found.throughput == pytest.approx(share * closed.throughput)


GOOD = {"demand": 0.1, "servers": 2.0, "background": 0.0}


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("servers", 0.0), ("servers", -1.0), ("servers", math.nan), ("servers", math.inf),
        ("demand", -0.1), ("demand", math.nan), ("demand", math.inf),
        ("background", -0.1), ("background", math.nan),
    ],
)  # fmt: skip
@pytest.mark.parametrize("solver", [solve, lambda network: at_offered_rate(network, 1.0)])
def test_no_station_can_have(part, value, solver):
    network = Network([Station("cpu", "cpu", **{**GOOD, part: value}), delay("think", 1.0)], 4.0)
    with pytest.raises(BadNetwork, match=f"{part} of cpu"):
        solver(network)


@pytest.mark.parametrize("population", [0.0, -3.0, 0.5, math.nan])
def test_no_network_can_have_such_a_population(population):
    with pytest.raises(BadNetwork, match="no engines fit in"):
        solve(Network([cpu(0.1, 2.0)], population, "engines"))


def test_somebody_must_wait_for_something():
    with pytest.raises(BadNetwork, match="no station has a demand"):
        solve(Network([cpu(0.0, 2.0, background=0.1)], 1.0))


@pytest.mark.parametrize("offered", [0.0, -1.0, math.nan])
def test_no_network_can_be_offered(offered):
    with pytest.raises(BadNetwork, match="offered rate"):
        at_offered_rate(Network([cpu(0.1, 2.0)], 1.0), offered)


@pytest.mark.parametrize(("memory", "admitted"), [(100.0, 10), (99.0, 9), (1e9, 20)])
def test_limits_let_in_whole_customers(memory, admitted):
    stations = [cpu(0.1, 4.0), delay("think", 1.0)]
    limited = Network(stations, 20.0, limits=[Limit("memory", 10.0, memory), Limit("handles", 1.0, 1000.0)])
    assert limited.admitted() == admitted
    assert rate(limited) == pytest.approx(rate(Network(stations, float(admitted))), rel=1e-12)


def test_a_limit_that_lets_nobody_in():
    with pytest.raises(BadNetwork, match="no customers fit in"):
        solve(Network([cpu(0.1, 2.0)], 5.0, limits=[Limit("memory", 10.0, 9.0)]))
