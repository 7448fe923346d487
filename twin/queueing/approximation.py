"""Closed networks that are too large for exact analysis: Bard and Schweitzer's fixed point.

A customer who arrives finds the queue of one customer less, which is taken as (n - 1) / n of the queue with
all of them. A station with m servers makes the arrival wait only behind what exceeds its servers (Seidmann).
"""

from __future__ import annotations

import numpy as np

from twin.queueing.network import Array

_TOLERANCE = 1e-10
_ROUNDS = 10_000


class NotConverged(ArithmeticError):
    """The fixed point was not reached."""


def approximate_mva(demands: Array, servers: Array, think: Array, population: Array) -> tuple[Array, Array]:
    """Throughput, and residence time per station; a row each, and a column per configuration."""
    # a station with less than one server is a slow single server
    queued = np.where(servers > 1, demands / servers, demands / np.minimum(servers, 1))
    unqueued = np.where(servers > 1, demands - queued, 0.0)
    queue = np.repeat((population / max(len(demands), 1))[None, :], len(demands), axis=0)
    throughput = np.zeros_like(think)
    for _ in range(_ROUNDS):
        residence = queued * (1 + queue * (population - 1) / population) + unqueued
        previous, throughput = throughput, population / (think + residence.sum(axis=0))
        queue = throughput * (residence - unqueued)
        if np.all(np.abs(throughput - previous) <= _TOLERANCE * throughput):
            return throughput, residence
    raise NotConverged(f"no fixed point after {_ROUNDS} rounds")
