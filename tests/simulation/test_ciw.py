"""The same networks in Ciw, which shares no line with us."""

from __future__ import annotations

import ciw
import numpy as np
import pytest

from twin.queueing.network import Network, Station, cpu, serial
from twin.simulation.playing import model_of
from twin.simulation.running import Estimate, Simulated, estimate, simulate

RUNS, SECONDS, WARM_UP = 6, 60.0, 10.0


def agree(one: Estimate, other: Estimate) -> bool:
    return abs(one.value - other.value) <= one.half_width + other.half_width


def test_a_closed_network_agrees():
    customers, work, write = 8, 0.02, 0.008
    circle = ciw.create_network(
        # everybody arrives at once, nobody after them, and nobody leaves
        arrival_distributions=[ciw.dists.Sequential([1e-9] * customers + [float("inf")]), None],
        service_distributions=[ciw.dists.Exponential(1 / work), ciw.dists.Exponential(1 / write)],
        routing=[[0.0, 1.0], [1.0, 0.0]],
        number_of_servers=[2, 1],
    )
    rates = []
    for seed in range(RUNS):
        ciw.seed(seed)
        simulation = ciw.Simulation(circle)
        simulation.simulate_until_max_time(SECONDS)
        ends = [one.service_end_date for one in simulation.get_all_records() if one.node == 2]
        rates.append(sum(WARM_UP < end <= SECONDS for end in ends) / (SECONDS - WARM_UP))
    ours = simulate(
        model_of(Network([Station("cpu", "serial", work, servers=2), serial("disk", write)], customers))
    )
    assert isinstance(ours, Simulated)
    assert agree(ours.throughput, estimate(rates))


@pytest.mark.parametrize("offered", [60.0, 90.0])
def test_an_open_network_agrees_in_its_mean_and_its_percentiles(offered):
    work, write = 0.02, 0.007
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(offered), None],
        service_distributions=[ciw.dists.Exponential(1 / work), ciw.dists.Exponential(1 / write)],
        routing=[[0.0, 1.0], [0.0, 0.0]],
        number_of_servers=[float("inf"), 1],
        ps_thresholds=[2, 1],
        service_disciplines=[ciw.disciplines.FIFO, ciw.disciplines.FIFO],
    )
    means, tails = [], []
    for seed in range(RUNS):
        ciw.seed(seed)
        simulation = ciw.Simulation(network, node_class=[ciw.PSNode, ciw.Node])
        simulation.simulate_until_max_time(SECONDS)
        records = simulation.get_all_records()
        came = {one.id_number: one.arrival_date for one in records if one.node == 1}
        spent = [
            one.exit_date - came[one.id_number]
            for one in records
            if one.node == 2 and came[one.id_number] > WARM_UP
        ]
        means.append(float(np.mean(spent)))
        tails.append(float(np.percentile(spent, 95)))
    ours = simulate(
        model_of(Network([cpu(work, 2), serial("disk", write)], 10**6), 0, offered), messages=50_000
    )
    assert isinstance(ours, Simulated)
    assert agree(ours.response, estimate(means))
    assert agree(ours.percentiles[95], estimate(tails))
