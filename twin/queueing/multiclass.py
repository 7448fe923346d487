"""Several kinds of customers in one closed network: exact over the lattice of populations, else approximate.

Demands have a row per class and a column per station. A station with m servers shares its speed min(j, m)
among whoever is there, so classes may have different demands at it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from twin.queueing.approximation import NotConverged
from twin.queueing.network import Array, BadNetwork

# points of the population lattice times multi-server stations' subsets that are still quick to visit
_LARGEST_LATTICE = 200_000
_TOLERANCE = 1e-10
_ROUNDS = 10_000


@dataclass(frozen=True)
class ClassSolution:
    """Throughput per class, residence time per class and station."""

    throughput: Array
    residence: Array
    exact: bool

    @property
    def queue(self) -> Array:
        """Customers of each class at each station."""
        return self.throughput[:, None] * self.residence


def solve_classes(demands: Array, servers: Array, think: Array, population: list[int]) -> ClassSolution:
    """`servers` per station, `think` and `population` per class."""
    if (demands < 0).any() or not np.isfinite(demands).all():
        raise BadNetwork("a demand is negative or not a number")
    if (servers <= 0).any():
        raise BadNetwork(f"servers are {servers.min():g}")
    if min(population) < 0 or sum(population) < 1:
        raise BadNetwork(f"the population is {population}")
    lattice = int(np.prod([count + 1 for count in population]))
    subsets = 1 << int((servers != 1).sum())
    if lattice * subsets <= _LARGEST_LATTICE:
        return _exact(demands, servers, think, population)
    return _approximate(demands, servers, think, np.array(population, float))


def _exact(demands: Array, servers: Array, think: Array, population: list[int]) -> ClassSolution:
    """The recursion of `mva.exact_mva` over all smaller populations: a class arriving at a station finds what
    is there with one customer of its class less. Empty-station chances come from networks without it."""
    classes, stations = demands.shape
    shared = [k for k in range(stations) if servers[k] != 1]
    states = {k: max(1, min(int(np.ceil(servers[k])), sum(population))) for k in shared}
    everything = (1 << len(shared)) - 1
    queue: dict[tuple[int, tuple[int, ...]], Array] = {}
    chance: dict[tuple[int, tuple[int, ...], int], Array] = {}
    rates: dict[tuple[int, tuple[int, ...]], Array] = {}
    residence = np.zeros_like(demands)
    for present in product(*(range(count + 1) for count in population)):
        for subset in range(everything + 1):
            in_subset = {k for bit, k in enumerate(shared) if (subset >> bit) & 1}
            active = [k for k in range(stations) if k not in shared or k in in_subset]
            residence = np.zeros_like(demands)
            rate = np.zeros(classes)
            for c in range(classes):
                if not present[c]:
                    continue
                fewer = _one_less(present, c)
                for k in active:
                    seen = 1 + queue[subset, fewer][k]
                    if k in in_subset:
                        idle = np.maximum(servers[k] - 1 - np.arange(states[k]), 0)
                        seen = (seen + idle @ chance[subset, fewer, k]) / servers[k]
                    residence[c, k] = demands[c, k] * seen
                cycle = think[c] + residence[c].sum()
                rate[c] = present[c] / cycle if cycle > 0 else np.inf
            rates[subset, present] = rate
            queue[subset, present] = np.nan_to_num(rate[:, None] * residence).sum(axis=0)
            for bit, k in enumerate(shared):
                if k in in_subset:
                    chance[subset, present, k] = _chances(
                        k, bit, subset, present, demands[:, k], servers[k], states[k], rates, chance
                    )
    return ClassSolution(rates[everything, tuple(population)], residence, exact=True)


def _chances(
    k: int,
    bit: int,
    subset: int,
    present: tuple[int, ...],
    demand: Array,
    servers: float,
    states: int,
    rates: dict[tuple[int, tuple[int, ...]], Array],
    chance: dict[tuple[int, tuple[int, ...], int], Array],
) -> Array:
    """How likely 0, 1, 2 ... customers are at station k."""
    found = np.zeros(states)
    used = [c for c in range(len(present)) if present[c]]
    if not used:
        found[0] = 1.0
        return found
    for j in range(1, states):
        found[j] = sum(
            demand[c] * rates[subset, present][c] * chance[subset, _one_less(present, c), k][j - 1]
            for c in used
        ) / min(j, servers)
    c = used[0]
    without = rates[subset & ~(1 << bit), present][c]
    before = chance[subset, _one_less(present, c), k][0]
    found[0] = before * rates[subset, present][c] / without
    return found


def _approximate(demands: Array, servers: Array, think: Array, population: Array) -> ClassSolution:
    """Bard and Schweitzer's fixed point with Seidmann's multi-server stations, as for one class."""
    queued = demands / np.where(servers > 1, servers, np.minimum(servers, 1))
    unqueued = np.where(servers > 1, demands - queued, 0.0)
    queue = np.repeat(population[:, None] / demands.shape[1], demands.shape[1], axis=1)
    fewer = (population - 1) / np.maximum(population, 1)
    throughput = np.zeros(len(population))
    for _ in range(_ROUNDS):
        # its own class counts with one customer less, the others in full
        seen = queue.sum(axis=0) - queue * (1 - fewer)[:, None]
        residence = queued * (1 + seen) + unqueued
        previous, throughput = throughput, population / (think + residence.sum(axis=1))
        queue = throughput[:, None] * (residence - unqueued)
        if np.all(np.abs(throughput - previous) <= _TOLERANCE * throughput):
            return ClassSolution(throughput, residence, exact=False)
    raise NotConverged(f"no fixed point after {_ROUNDS} rounds")


def _one_less(present: tuple[int, ...], c: int) -> tuple[int, ...]:
    return (*present[:c], present[c] - 1, *present[c + 1 :])
