"""Exact mean value analysis of closed networks with load-dependent stations, over many configurations.

A station with m servers works min(j, m) times as fast with j customers; m need not be whole. The textbook
recursion for the probability of an empty station subtracts nearly equal numbers and fails near saturation.
Here it is a ratio of cycle times, with and without that station (Reiser 1981): only products and sums of
positive numbers. It needs the network without each multi-server station too, hence the subsets.
"""

from __future__ import annotations

import numba
import numpy as np

from twin.queueing.network import Array

# configurations that are worked on together: their state stays in the first-level cache, and the innermost
# loops run over them so that the compiler can use vector instructions
_BLOCK = 64


def exact_mva(
    shared: Array, servers: Array, single: Array, think: Array, population: Array
) -> tuple[Array, Array]:
    """Throughput, and residence time per station (multi-server stations first).

    `shared` and `servers`: demands and servers of the multi-server stations, a row each; `single`: demands of
    single-server stations; `think`: time outside all queues; one column per configuration everywhere.
    """
    configurations = len(think)
    throughput = np.empty(configurations)
    residence = np.empty((len(shared) + len(single), configurations))
    if configurations:
        _solve(shared, servers, single, think, population.astype(np.int64), throughput, residence)
    return throughput, residence


@numba.njit(cache=True, error_model="numpy")
def _solve(shared, servers, single, think, population, throughput, residence):  # type: ignore[no-untyped-def]
    for start in range(0, len(think), _BLOCK):
        stop = min(start + _BLOCK, len(think))
        _solve_block(
            shared[:, start:stop].copy(), servers[:, start:stop].copy(), single[:, start:stop].copy(),
            think[start:stop].copy(), population[start:stop],
            throughput[start:stop], residence[:, start:stop],
        )  # fmt: skip


@numba.njit(cache=True, error_model="numpy")
def _solve_block(shared, servers, single, think, population, throughput, residence):  # type: ignore[no-untyped-def]
    width, many, ones = len(think), len(shared), len(single)
    subsets = 1 << many
    most = population.max()
    # states of a station in which a server is idle; fuller ones all work at the same speed
    states = 1
    for i in range(many):
        for b in range(width):
            states = max(states, min(int(np.ceil(servers[i, b])), most))
    queue = np.zeros((subsets, many + ones, width))
    chance = np.zeros((subsets, many, states, width))
    chance[:, :, 0, :] = 1.0
    cycle = np.zeros((subsets, width))  # of one customer, divided by the population: 1 / throughput
    wait = np.empty((many + ones, width))
    rate = np.empty(width)
    for n in range(1, most + 1):
        for subset in range(subsets):
            for b in range(width):
                cycle[subset, b] = think[b]
            for k in range(ones):
                for b in range(width):
                    wait[many + k, b] = single[k, b] * (1.0 + queue[subset, many + k, b])
                    cycle[subset, b] += wait[many + k, b]
            for i in range(many):
                if not (subset >> i) & 1:
                    continue
                for b in range(width):
                    wait[i, b] = 1.0 + queue[subset, i, b]
                for j in range(states):
                    for b in range(width):
                        wait[i, b] += max(servers[i, b] - (j + 1), 0.0) * chance[subset, i, j, b]
                for b in range(width):
                    wait[i, b] *= shared[i, b] / servers[i, b]
                    cycle[subset, b] += wait[i, b]
            for b in range(width):
                cycle[subset, b] /= n
                rate[b] = 1.0 / cycle[subset, b] if cycle[subset, b] > 0.0 else 0.0
            for k in range(ones):
                for b in range(width):
                    queue[subset, many + k, b] = rate[b] * wait[many + k, b]
            for i in range(many):
                if not (subset >> i) & 1:
                    continue
                without = subset & ~(1 << i)
                for b in range(width):
                    queue[subset, i, b] = rate[b] * wait[i, b]
                for j in range(states - 1, 0, -1):
                    for b in range(width):
                        service = shared[i, b] / min(float(j), servers[i, b])
                        chance[subset, i, j, b] = rate[b] * service * chance[subset, i, j - 1, b]
                for b in range(width):
                    chance[subset, i, 0, b] *= cycle[without, b] * rate[b]
        for b in range(width):
            if population[b] == n:
                throughput[b] = rate[b]
                for k in range(many + ones):
                    residence[k, b] = wait[k, b]
