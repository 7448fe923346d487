"""Asymptotic bounds: what no arrangement of the work can beat, and what it cannot fall below."""

from __future__ import annotations

import numpy as np

from twin.queueing.network import Array, Network


def capacity(network: Network) -> Array:
    """The greatest rate that each station can sustain, with the background work it has to do beside."""
    work = network.rows("demand") + network.rows("background")
    limits = np.full(work.shape, np.inf)
    used = network.queueing[:, None] & (work > 0)
    np.divide(network.rows("servers"), work, out=limits, where=used)
    return limits


def upper_bound(network: Network) -> Array:
    """Nobody waits for anybody, or the busiest station never rests."""
    unhindered = network.admitted() / _uncontended(network).sum(axis=0)
    bound: Array = np.minimum(unhindered, capacity(network).min(axis=0))
    return bound


def lower_bound(network: Network) -> Array:
    """Every customer waits for all the others at the worst station, which its background work slows down.

    With background b the worst station's pace depends on the rate x: n / x = d + (n - 1) s / (m - b x), a
    quadratic in x per station whose smaller root is the bound.
    """
    demand, background, servers = (network.rows(part) for part in ("demand", "background", "servers"))
    others = network.admitted() - 1
    total = _uncontended(network, slowed=True).sum(axis=0)
    lowest = np.full(network.size, np.inf)
    for row in np.flatnonzero(network.queueing):
        a = total * background[row]
        b = total * servers[row] + others * demand[row] + (others + 1) * background[row]
        c = (others + 1) * servers[row]
        root = np.sqrt(np.maximum(b * b - 4 * a * c, 0))
        lowest = np.minimum(lowest, 2 * c / (b + root))
    return np.where(np.isinf(lowest), (others + 1) / total, lowest)


def _uncontended(network: Network, slowed: bool = False) -> Array:
    """Each station's time when a customer is alone; `slowed`: beside all the background work there can be."""
    demand, servers = network.rows("demand"), network.rows("servers")
    if slowed:
        left = servers - network.rows("background") * capacity(network).min(axis=0)
        servers = np.where(network.queueing[:, None], np.maximum(left, 1e-12), np.inf)
    return demand / np.where(network.queueing[:, None], np.minimum(servers, 1), 1)
