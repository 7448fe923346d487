"""A table that nobody here has prepared: three products on four machines, all invented.

The rates are synthetic and their law is none of the twin's: no network is solved. Clients scale by the
universal scalability law, sizes by a power beyond a knee, machines by a clock that counts for a little less
than it says and a speed of their own, persistence by a wait for the disk and a ceiling that batches lift, and
each product has its likes and dislikes among the machines. Every row carries the noise of a run.
"""

from __future__ import annotations

import csv
import io
import itertools
from dataclasses import dataclass

import numpy as np

NOISE = 0.05
SIZES = (256, 1024, 4096, 16384, 65536, 262144, 1048576)
CLIENTS = (1, 2, 4, 8, 16, 32, 64, 100, 150, 200)
COLUMNS = (
    "family", "os", "machine", "cpus", "mhz", "product", "version", "message_bytes", "persistent", "clients",
    "metric", "value", "published_at",
)  # fmt: skip


@dataclass(frozen=True)
class _Product:
    version: str
    round_trip_us: float
    # message size from which bytes count, and how
    knee: float
    power: float
    # shares of a round trip that clients spend waiting for one another, and keeping each other informed
    contention: float
    coherency: float
    syncs: float
    batching: float


@dataclass(frozen=True)
class _Machine:
    cpus: int
    mhz: int
    # work per cycle, relative to the others
    per_cycle: float
    network_us: float
    mbytes_per_s: float
    sync_ms: float


PRODUCTS = {
    "Synthetic Queue Manager": _Product("1.0", 420, 9_000, 0.80, 0.040, 2e-5, 2.0, 25),
    "Synthetic Rabbit": _Product("2.1", 650, 30_000, 0.95, 0.090, 8e-5, 1.0, 60),
    "Synthetic Subjects": _Product("3.2", 120, 4_000, 0.90, 0.025, 1e-5, 1.4, 120),
}
MACHINES = {
    "invented-4": _Machine(4, 2400, 0.80, 180, 110, 1.9),
    "invented-8": _Machine(8, 3100, 1.00, 90, 1100, 0.45),
    "invented-16": _Machine(16, 2600, 1.25, 120, 1100, 0.9),
    "invented-32": _Machine(32, 2100, 1.40, 60, 2800, 0.25),
}


def table(rows: int = 1000, seed: int = 1) -> str:
    """The CSV of some of the grid, drawn without repeats."""
    chance = np.random.default_rng(seed)
    grid = list(itertools.product(PRODUCTS, MACHINES, SIZES, (False, True), CLIENTS))
    liking = {pair: np.exp(0.08 * chance.standard_normal()) for pair in itertools.product(PRODUCTS, MACHINES)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for at in np.sort(chance.permutation(len(grid))[:rows]):
        product, machine, size, persistent, clients = grid[at]
        rate = _rate(PRODUCTS[product], MACHINES[machine], size, persistent, clients)
        rate *= liking[product, machine] * np.exp(NOISE * chance.standard_normal())
        writer.writerow(
            (
                "request_reply", "linux", machine, MACHINES[machine].cpus, MACHINES[machine].mhz, product,
                PRODUCTS[product].version, size, str(persistent).lower(), clients, "throughput_msgs_per_s",
                f"{rate:.4g}", "2024-11-05",
            )
        )  # fmt: skip
    return text.getvalue()


def _rate(product: _Product, machine: _Machine, size: int, persistent: bool, clients: int) -> float:
    speed = (machine.mhz / 3000) ** 0.9 * machine.per_cycle
    work = product.round_trip_us * 1e-6 / speed * (1 + (size / product.knee) ** product.power)
    alone = work + machine.network_us * 1e-6 + 2 * size / (machine.mbytes_per_s * 1e6)
    if persistent:
        alone += product.syncs * machine.sync_ms * 1e-3
    # more processors, less waiting for one another; a wait for the disk is nobody's contention
    crowd = product.contention * 4 / machine.cpus**0.8 * work / alone
    scaled = clients / alone / (1 + crowd * (clients - 1) + product.coherency * clients * (clients - 1))
    ceilings = [machine.cpus / work, machine.mbytes_per_s * 1e6 / (2 * size)]
    if persistent:
        shared = 1 + clients / (1 + clients / product.batching)
        ceilings.append(shared / (product.syncs * machine.sync_ms * 1e-3))
        ceilings.append(0.35 * machine.mbytes_per_s * 1e6 / size)
    # no corner is sharp
    return float(sum(one**-4 for one in (scaled, *ceilings)) ** (-1 / 4))
