"""From one configuration of a network to the model that plays it.

What the formulas only approximate is played as it is: waiting commits share a force, a write goes to one disk
of a stripe, a lock is held over it, a customer has a lock of its own, a limit lets in only so many, a message
from outside waits for a free customer, and work that nobody waits for competes with the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from twin.queueing.network import BadNetwork, Locks, Network, Quantity, Station, check
from twin.simulation.model import (
    Discipline,
    JobClass,
    Model,
    Origin,
    Place,
    Step,
    give_back,
    leave_behind,
    take,
    visit,
)

# Work left behind may fall so many messages back before its customers wait for it: a channel's batch, 50 by
# default. More of it lets a ceiling come nearer to what the formula takes it for.
_BACKLOG = 50
# what messages from outside wait in for a free customer
POOL = "pool"
# beyond as many customers, nobody from outside ever waits for a free one
_ENDLESS = 100_000


def model_of(
    network: Network, at: int = 0, offered_msgs_per_s: float | None = None, variation: float = 1.0
) -> Model:
    """Configuration `at` of a network: its own customers go round, or messages come from outside."""
    check(network)
    if not (math.isfinite(variation) and variation >= 0):
        raise BadNetwork(f"the variation of service times is {variation:g}")
    if offered_msgs_per_s is not None and not (math.isfinite(offered_msgs_per_s) and offered_msgs_per_s > 0):
        raise BadNetwork(f"the offered rate is {offered_msgs_per_s:g}")
    population = int(network.admitted()[at])
    parts = [_Part(station, network.size, at) for station in network.stations]
    # customers with locks or threads of their own are told apart by them
    kinds = min(max(part.divided for part in parts), population)
    shares = [population // kinds + (kind < population % kinds) for kind in range(kinds)]
    places = [place for part in parts for place in part.places()]
    routes = [[step for part in parts for step in part.steps(kind)] for kind in range(kinds)]
    names = ["messages"] if kinds == 1 else [f"messages {kind + 1}" for kind in range(kinds)]
    if offered_msgs_per_s is None:
        classes = [
            JobClass(name, route, Origin.CLOSED, population=share)
            for name, route, share in zip(names, routes, shares, strict=True)
        ]
    else:
        if population < _ENDLESS:
            pools = [f"{POOL} {kind + 1}" for kind in range(kinds)]
            places += [
                Place(pool, Discipline.HELD, share, told_as=network.customers)
                for pool, share in zip(pools, shares, strict=True)
            ]
            routes = [
                [take(pool), *route, give_back(pool)] for pool, route in zip(pools, routes, strict=True)
            ]
        each = offered_msgs_per_s / kinds
        classes = [
            JobClass(name, route, Origin.OPEN, rate=each) for name, route in zip(names, routes, strict=True)
        ]
    left_behind = [
        JobClass(part.beside, part.work_beside(), Origin.LEFT_BEHIND) for part in parts if part.background > 0
    ]
    return Model(places, [*classes, *left_behind], variation)


@dataclass(frozen=True)
class _Part:
    """One station at one configuration."""

    station: Station
    size: int
    at: int

    def _value(self, quantity: Quantity) -> float:
        return float(np.broadcast_to(np.asarray(quantity, float), self.size)[self.at])

    @property
    def name(self) -> str:
        return self.station.name

    @property
    def beside(self) -> str:
        return f"{self.name}, beside"

    @property
    def demand(self) -> float:
        return self._value(self.station.demand)

    @property
    def background(self) -> float:
        return self._value(self.station.background)

    @property
    def servers(self) -> float:
        return self._value(self.station.servers)

    @property
    def locks(self) -> Locks | None:
        return self.station.locks

    @property
    def divided(self) -> int:
        """Among how many its customers are divided."""
        if self.demand <= 0:
            return 1
        return 1 if self.locks is None else max(int(self._value(self.locks.count)), 1)

    def _own(self, kind: int) -> str:
        return self.name if self.divided == 1 else f"{self.name} {kind % self.divided + 1}"

    @property
    def _disk(self) -> str:
        return f"{self.name}, disk"

    def places(self) -> list[Place]:
        if self.demand <= 0 and self.background <= 0:
            return []
        name, kind = self.name, self.station.kind
        found: list[Place]
        if self.locks is not None and self.demand > 0:
            found = [Place(self._own(at), Discipline.HELD, told_as=name) for at in range(self.divided)]
            disks = self._value(self.locks.disks)
            if math.isfinite(disks):
                found += [Place(self._disk, Discipline.IN_TURN, copies=max(disks, 1.0), told_as=self._disk)]
            else:
                # who holds a lock and has a disk of its own is alone with it
                found += [Place(self._disk, Discipline.SHARED, math.inf)]
        elif kind == "delay":
            found = [Place(name, Discipline.SHARED, math.inf)]
        elif kind == "cpu":
            found = [Place(name, Discipline.SHARED, self.servers, told_as=name)]
        elif kind == "log":
            found = [Place(name, Discipline.GROUPED, max(self.servers, 1.0), told_as=name)]
        elif kind == "disk":
            found = [Place(name, Discipline.IN_TURN, copies=max(self.servers, 1.0), told_as=name)]
        else:
            found = [Place(name, Discipline.IN_TURN, max(round(self.servers), 1), told_as=name)]
        if self.background > 0:
            found += [Place(self.beside, Discipline.HELD, _BACKLOG)]
        return found

    def steps(self, kind: int) -> list[Step]:
        """What a message does here."""
        found: list[Step] = []
        if self.demand > 0 and self.locks is not None:
            held = visit(self._disk, self._value(self.locks.hold))
            found += [take(self._own(kind)), held, give_back(self._own(kind))]
        elif self.demand > 0:
            found += [visit(self.name, self.demand)]
        if self.background > 0:
            found += [take(self.beside), leave_behind(self.beside)]
        return found

    def work_beside(self) -> list[Step]:
        served_at = self.name if self.locks is None or self.demand <= 0 else self._disk
        return [visit(served_at, self.background), give_back(self.beside)]
