"""What is read off every solved network in the same way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from twin.queueing.network import Array, Network
from twin.queueing.solving import Solution, held_at, solve
from twin.systems.model import Batch, Evaluation


def solved(network: Network, batch: Batch) -> Solution:
    """At the offered rate where a configuration has one that can be sustained, else at its own pace."""
    closed = solve(network)
    offered = batch.number("offered_rate_msgs_per_s")
    asked = np.isfinite(offered)
    if not asked.any():
        return closed
    held = asked & (offered < closed.throughput)
    opened = held_at(np.where(held, offered, closed.throughput / 2), closed)
    return replace(
        closed,
        throughput=np.where(held, opened.throughput, closed.throughput),
        residence=np.where(held, opened.residence, closed.residence),
        saturated=asked & ~held,
        admission=np.where(held, opened.admission, 0.0),
    )


def evaluated(network: Network, batch: Batch, **metrics: Array) -> Evaluation:
    """Rate, response time and, where there is a CPU station, its use; and what a system adds of its own."""
    solution = solved(network, batch)
    found: dict[str, Array] = {
        "throughput_msgs_per_s": solution.throughput,
        "response_ms": solution.response * 1000,
        "capacity_msgs_per_s": solution.capacity,
    }
    processors = [row for row, station in enumerate(network.stations) if station.kind == "cpu"]
    if processors:
        work = (network.rows("demand") + network.rows("background"))[processors].sum(axis=0)
        busy = solution.utilisation[processors].max(axis=0) * 100
        found |= {"cpu_ms_per_msg": work * 1000, "cpu_busy_pct": busy, "cpu_idle_pct": 100 - busy}
    return Evaluation(found | metrics, solution)
