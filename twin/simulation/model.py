"""What is simulated: stations, and the way that each class of jobs takes through them.

It is the network of the formulas with every rule played out: commits that share a force, a lock that is held
over a write, writes that meet on a disk, work that is left behind for others to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class Discipline(IntEnum):
    """How a station serves those who are there."""

    # all at once, as fast as the servers go round; servers need not be whole, endless ones are a delay
    SHARED = 0
    # one after the other, in the order of arrival, as many at once as there are servers
    IN_TURN = 1
    # one service for as many as wait, up to the number of servers: group commit
    GROUPED = 2
    # held from one step to another: a lock, or a pool of as many as there are servers
    HELD = 3


class Act(IntEnum):
    """What a job does at a step."""

    VISIT = 0
    TAKE = 1
    GIVE_BACK = 2
    # leaves a job of another class behind that nobody waits for
    LEAVE_BEHIND = 3
    END = 4


class Origin(IntEnum):
    """Where jobs of a class come from."""

    # a fixed number goes round
    CLOSED = 0
    # they come from outside at a rate, at random
    OPEN = 1
    # other jobs leave them behind
    LEFT_BEHIND = 2


@dataclass(frozen=True)
class Place:
    """A station, or several equal ones of which each visit goes to any by chance, like a write to a stripe.
    A part of a copy is one that is chosen less often."""

    name: str
    discipline: Discipline
    servers: float = 1.0
    copies: float = 1.0
    # under which name its use is told, together with others of that name; not at all without one
    told_as: str = ""


@dataclass(frozen=True)
class Step:
    """`mean` seconds of service, or the class that is left behind."""

    act: Act
    place: str = ""
    mean: float = 0.0
    job_class: str = ""


@dataclass(frozen=True)
class JobClass:
    """Jobs that take the same steps. Those of a closed class begin anew at once when they end."""

    name: str
    steps: Sequence[Step]
    origin: Origin = Origin.CLOSED
    population: int = 0
    rate: float = 0.0


@dataclass(frozen=True)
class Model:
    """`variation`: how far service times scatter, as a share of their mean: 1 exponential, 0 not at all."""

    places: Sequence[Place]
    classes: Sequence[JobClass]
    variation: float = 1.0


def visit(place: str, mean: float) -> Step:
    return Step(Act.VISIT, place, mean)


def take(place: str) -> Step:
    return Step(Act.TAKE, place)


def give_back(place: str) -> Step:
    return Step(Act.GIVE_BACK, place)


def leave_behind(job_class: str) -> Step:
    return Step(Act.LEAVE_BEHIND, job_class=job_class)
