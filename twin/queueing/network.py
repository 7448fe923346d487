"""The one language in which every system is told: stations with demands, a population, limits.

Everything is an array over configurations, so a network describes one configuration or a million of them.
Times are in seconds per message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
# a number stands for the same number in every configuration
Quantity = Array | float

Kind = Literal["cpu", "serial", "log", "disk", "pipe", "delay"]


@dataclass(frozen=True)
class Locks:
    """What stands behind a station whose customers are divided among `count` locks. Each is held for `hold`
    seconds, and so is one of the `disks` that all have in common, any by chance, or a disk of its own where
    there is no end of them. The formula knows a mean hold and a number of holders, the simulator plays it."""

    count: Quantity
    hold: Quantity
    disks: Quantity


@dataclass(frozen=True)
class Station:
    """Where messages are served. With j customers it works min(j, servers) times as fast as with one.

    `demand` is what a customer waits for; `background` is work for the same message that nobody waits for
    but that takes servers away. A station with background alone is a ceiling.
    """

    name: str
    kind: Kind
    demand: Quantity
    background: Quantity = 0.0
    servers: Quantity = 1.0
    locks: Locks | None = None


def cpu(demand: Quantity, processors: Quantity, background: Quantity = 0.0, name: str = "cpu") -> Station:
    return Station(name, "cpu", demand, background, processors)


def serial(name: str, demand: Quantity) -> Station:
    """A thread or a lock: one customer at a time."""
    return Station(name, "serial", demand)


def log(force_time: Quantity, sharing: Quantity = 1.0, name: str = "log") -> Station:
    """Forced writes; up to `sharing` waiting commits go out with one force (group commit)."""
    return Station(name, "log", force_time, servers=sharing)


def disk(write_time: Quantity, stripes: Quantity = 1.0, name: str = "disk") -> Station:
    """A dedicated disk, or several that share the writes of all."""
    return Station(name, "disk", write_time, servers=stripes)


def pipe(
    waited_bytes: Quantity,
    bytes_per_s: Quantity,
    background_bytes: Quantity = 0.0,
    name: str = "network",
) -> Station:
    """A link that moves bytes one message after another."""
    waited, beside = np.divide(waited_bytes, bytes_per_s), np.divide(background_bytes, bytes_per_s)
    return Station(name, "pipe", waited, beside)


def delay(name: str, time: Quantity) -> Station:
    """Time that passes without anybody queueing."""
    return Station(name, "delay", time)


@dataclass(frozen=True)
class Limit:
    """Memory, handles: each customer takes some of it, and when it is gone nobody else gets in."""

    name: str
    per_customer: Quantity
    capacity: Quantity


@dataclass(frozen=True)
class Network:
    """Stations and who circulates among them: a fixed population, or an offered rate from outside."""

    stations: Sequence[Station]
    population: Quantity
    customers: str = "customers"
    limits: Sequence[Limit] = ()

    @cached_property
    def size(self) -> int:
        """How many configurations it describes."""
        parts = [self.population]
        parts += [part for one in self.stations for part in (one.demand, one.background, one.servers)]
        parts += [part for one in self.limits for part in (one.per_customer, one.capacity)]
        return int(np.broadcast(*(np.atleast_1d(part) for part in parts)).size)

    def rows(self, part: Literal["demand", "background", "servers"]) -> Array:
        """One row per station, one column per configuration."""
        return self._rows[part]

    @cached_property
    def _rows(self) -> dict[str, Array]:
        columns = {}
        for part in ("demand", "background", "servers"):
            rows = columns[part] = np.empty((len(self.stations), self.size))
            for row, station in zip(rows, self.stations, strict=True):
                row[:] = getattr(station, part)
            rows.flags.writeable = False
        return columns

    @cached_property
    def queueing(self) -> Flags:
        return np.array([one.kind != "delay" for one in self.stations])

    def admitted(self) -> Array:
        """The population that the limits let in, in whole customers."""
        population = np.broadcast_to(np.asarray(self.population, float), self.size)
        for limit in self.limits:
            population = np.minimum(population, np.divide(limit.capacity, limit.per_customer))
        whole: Array = np.floor(population)
        return whole


class BadNetwork(ValueError):
    """A quantity that no network can have; the message names it."""


def check(network: Network) -> None:
    """Refuse what would otherwise come out as nonsense."""
    for part in ("demand", "background", "servers"):
        rows = network.rows(part)
        for station, row in zip(network.stations, rows, strict=True):
            if not np.isfinite(row).all():
                raise BadNetwork(f"{part} of {station.name} is not a number")
            if (row < 0).any() or (part == "servers" and (row <= 0).any()):
                raise BadNetwork(f"{part} of {station.name} is {row.min():g}")
    admitted = network.admitted()
    if not (admitted >= 1).all():
        raise BadNetwork(f"no {network.customers} fit in: {np.min(admitted):g}")
    if np.isinf(admitted).any():
        raise BadNetwork(f"there is no end of {network.customers}")
    if (network.rows("demand").sum(axis=0) <= 0).any():
        raise BadNetwork("no station has a demand that anybody waits for")
