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

Present = tuple[int, ...]

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
    lattice = _Lattice(demands, servers, think)
    for present in product(*(range(count + 1) for count in population)):
        for subset in range(lattice.everything + 1):
            residence = lattice.visit(subset, present)
    return ClassSolution(lattice.rates[lattice.everything, tuple(population)], residence, exact=True)


class _Lattice:
    """The recursion of `mva.exact_mva` over all smaller populations: who arrives at a station finds what is
    there with one customer of its class less. Chances of empty stations come from the networks without them,
    so every subset of the multi-server stations is a network of its own."""

    def __init__(self, demands: Array, servers: Array, think: Array) -> None:
        self.demands, self.servers, self.think = demands, servers, think
        self.shared = [k for k in range(demands.shape[1]) if servers[k] != 1]
        self.everything = (1 << len(self.shared)) - 1
        self.rates: dict[tuple[int, Present], Array] = {}
        self._queue: dict[tuple[int, Present], Array] = {}
        self._chance: dict[tuple[int, Present, int], Array] = {}

    def visit(self, subset: int, present: Present) -> Array:
        """Residence times of this population, once all smaller ones have been visited."""
        residence = np.zeros_like(self.demands)
        rate = np.zeros(len(self.demands))
        for c in _classes(present):
            residence[c] = self.demands[c] * self._delay_factors(subset, _one_less(present, c))
            cycle = self.think[c] + residence[c].sum()
            rate[c] = present[c] / cycle if cycle > 0 else np.inf
        self.rates[subset, present] = rate
        self._queue[subset, present] = np.nan_to_num(rate[:, None] * residence).sum(axis=0)
        for bit, k in enumerate(self.shared):
            if (subset >> bit) & 1:
                self._chance[subset, present, k] = self._chances(subset, present, bit, k)
        return residence

    def _delay_factors(self, subset: int, seen: Present) -> Array:
        """How many times its own demand an arrival stays at each station, given who is there."""
        factors: Array = 1 + self._queue[subset, seen]
        for bit, k in enumerate(self.shared):
            if not (subset >> bit) & 1:
                factors[k] = 0.0
                continue
            chance = self._chance[subset, seen, k]
            idle = np.maximum(self.servers[k] - 1 - np.arange(len(chance)), 0)
            factors[k] = (factors[k] + idle @ chance) / self.servers[k]
        return factors

    def _chances(self, subset: int, present: Present, bit: int, k: int) -> Array:
        """How likely 0, 1, 2 ... customers are at station k, as far as a server is idle."""
        found = np.zeros(max(1, int(np.ceil(self.servers[k]))))
        classes = _classes(present)
        if not classes:
            found[0] = 1.0
            return found
        rate = self.rates[subset, present]
        for c in classes:
            before = self._chance[subset, _one_less(present, c), k]
            found[1:] += self.demands[c, k] * rate[c] * before[:-1]
        found[1:] /= np.minimum(np.arange(1, len(found)), self.servers[k])
        first = classes[0]
        without = self.rates[subset & ~(1 << bit), present][first]
        found[0] = self._chance[subset, _one_less(present, first), k][0] * rate[first] / without
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


def _classes(present: Present) -> list[int]:
    return [c for c, count in enumerate(present) if count]


def _one_less(present: Present, c: int) -> Present:
    return (*present[:c], present[c] - 1, *present[c + 1 :])
