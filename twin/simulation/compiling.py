"""From a model to the arrays that the event loop works on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from twin.queueing.network import BadNetwork
from twin.simulation.engine import NOBODY, Floats, Plan, State, settle
from twin.simulation.model import Act, Discipline, JobClass, Model, Origin, Place, Step

# jobs that may be under way at once, and places for them at all stations: some hundred megabytes
MOST_JOBS = 1_000_000
_MOST_PLACES = 20_000_000


class Compiled:
    """A model ready to run, everybody at its start."""

    def __init__(self, model: Model, messages: int, random: np.random.Generator, room: int = 0) -> None:
        """`messages` are remembered one by one; `room`: for so many jobs besides those that go round."""
        self._station: dict[str, int] = {}
        for place in model.places:
            self._station[place.name] = sum(map(_whole, model.places[: len(self._station)]))
        self._copies = {place.name: place.copies for place in model.places}
        self._told_as: dict[str, list[int]] = {}
        for place in model.places:
            if place.told_as:
                first = self._station[place.name]
                self._told_as.setdefault(place.told_as, []).extend(range(first, first + _whole(place)))
        self.class_names = [one.name for one in model.classes]
        population = sum(one.population for one in model.classes if one.origin == Origin.CLOSED)
        jobs = population + room
        if jobs > MOST_JOBS:
            raise BadNetwork(f"{jobs} jobs at once are more than a simulation can hold: {MOST_JOBS}")
        self.plan = self._plan(model, jobs)
        self.state = _at_start(self.plan, model, jobs, messages, random)

    def mean_by_name(self, told: Callable[[int], float]) -> dict[str, float]:
        """A quantity of the stations under the names that they are told as."""
        return {name: float(np.mean([told(k) for k in stations])) for name, stations in self._told_as.items()}

    def service(self) -> Floats:
        """Seconds of service given at each station until now."""
        plan, state, now = self.plan, self.state, self.state.clock[0]
        given = state.service.copy()
        for k, (discipline, serving) in enumerate(zip(plan.discipline, state.serving, strict=True)):
            start = plan.heap_start[k]
            if discipline == Discipline.IN_TURN:
                given[k] -= (state.heap_end[start : start + serving] - now).sum()
            elif discipline == Discipline.GROUPED:
                given[k] -= state.due[k] - now if serving else 0.0
            else:
                given[k] += (now - state.seen_at[k]) * min(serving, plan.servers[k])
        return given

    def open_up(self, place: str, servers: float) -> None:
        """A pool has so many places from now on; those who waited for one get it."""
        k, state = self._station[place], self.state
        self.plan.servers[k] = servers
        while state.first[k] != NOBODY and state.serving[k] < servers:
            job = int(state.first[k])
            state.first[k] = state.behind[job]
            state.serving[k] += 1
            _ready(state, job)

    def send_on(self, place: str, like: str) -> None:
        """Those who wait for a pool begin anew with the steps of another class."""
        k, state = self._station[place], self.state
        first_step = self.plan.first_step[self.class_names.index(like)]
        while state.first[k] != NOBODY:
            job = int(state.first[k])
            state.first[k] = state.behind[job]
            state.at_step[job] = first_step
            _ready(state, job)

    def reroute(self, job_class: str, like: str) -> None:
        """Jobs of a class that begin from now on take the steps of another."""
        names = self.class_names
        self.plan.first_step[names.index(job_class)] = self.plan.first_step[names.index(like)]

    def _plan(self, model: Model, jobs: int) -> Plan:
        stations = [place for place in model.places for _ in range(_whole(place))]
        room = np.array([_heap_room(place, jobs) for place in stations], np.int64)
        if room.sum() > _MOST_PLACES:
            raise BadNetwork(f"{jobs} jobs at {len(stations)} stations are more than a simulation can hold")
        steps = [step for one in model.classes for step in (*one.steps, Step(Act.END))]
        lengths = [len(one.steps) + 1 for one in model.classes]
        variation = model.variation
        return Plan(
            discipline=np.array([place.discipline for place in stations], np.int64),
            servers=np.array([place.servers for place in stations], float),
            heap_start=np.concatenate([[0], np.cumsum(room)]).astype(np.int64),
            act=np.array([step.act for step in steps], np.int64),
            station=np.array([self._place(step) for step in steps], np.uint32),
            copies=np.array([self._copies.get(step.place, 1.0) for step in steps], float),
            mean=np.array([step.mean for step in steps], float),
            first_step=np.concatenate([[0], np.cumsum(lengths)])[:-1].astype(np.uint32),
            origin=np.array([one.origin for one in model.classes], np.int64),
            rate=np.array([one.rate for one in model.classes], float),
            arriving=np.array(_from_outside(model.classes), np.uint32),
            shape=1 / variation**2 if variation > 0 else 0.0,
        )

    def _place(self, step: Step) -> int:
        if step.act == Act.LEAVE_BEHIND:
            return self.class_names.index(step.job_class)
        return self._station.get(step.place, 0)


def _at_start(plan: Plan, model: Model, jobs: int, messages: int, random: np.random.Generator) -> State:
    stations, classes = len(plan.discipline), model.classes
    closed = _closed_jobs(classes)
    behind = np.arange(1, jobs + 1, dtype=np.uint32)
    job_class = np.zeros(jobs, np.uint32)
    job_class[: len(closed)] = closed
    arriving = _from_outside(classes)
    due = np.full(1 << max(1, math.ceil(math.log2(stations + len(arriving)))), np.inf)
    for at, c in enumerate(arriving):
        if classes[c].rate > 0:
            due[stations + at] = random.standard_exponential() / classes[c].rate
    if jobs:
        behind[-1] = NOBODY
    if closed:
        behind[len(closed) - 1] = NOBODY
    free = len(closed) if len(closed) < jobs else NOBODY
    ready = (0, len(closed) - 1) if closed else (NOBODY, NOBODY)
    heap = int(plan.heap_start[-1])
    state = State(
        clock=np.zeros(1),
        counts=np.zeros(2, np.int64),
        ends=np.array([free, *ready], np.uint32),
        serving=np.zeros(stations, np.int64),
        service=np.zeros(stations),
        seen_at=np.zeros(stations),
        served=np.zeros(stations),
        heap_end=np.zeros(heap),
        heap_job=np.zeros(heap, np.uint32),
        first=np.full(stations, NOBODY),
        last=np.full(stations, NOBODY),
        behind=behind,
        at_step=plan.first_step[job_class],
        job_class=job_class,
        began=np.zeros(jobs),
        work=np.zeros(jobs),
        due=due,
        winner=np.concatenate([np.zeros(len(due)), np.arange(len(due))]).astype(np.uint32),
        response=np.zeros(messages),
        ended=np.zeros(messages),
        message_class=np.zeros(messages, np.uint32),
    )  # fmt: skip
    settle(state)
    return state


def _closed_jobs(classes: Sequence[JobClass]) -> list[int]:
    """The class of each job that goes round; those of different classes begin in turn."""
    left = {c: one.population for c, one in enumerate(classes) if one.origin == Origin.CLOSED}
    found: list[int] = []
    while left:
        found += list(left)
        left = {c: count - 1 for c, count in left.items() if count > 1}
    return found


def _from_outside(classes: Sequence[JobClass]) -> list[int]:
    return [c for c, one in enumerate(classes) if one.origin == Origin.OPEN]


def _whole(place: Place) -> int:
    return math.ceil(place.copies)


def _heap_room(place: Place, jobs: int) -> int:
    """How many can be in service at once."""
    if place.discipline == Discipline.SHARED:
        return jobs
    return min(max(jobs, 1), math.ceil(place.servers)) if place.discipline == Discipline.IN_TURN else 1


def _ready(state: State, job: int) -> None:
    state.behind[job] = NOBODY
    if state.ends[1] == NOBODY:
        state.ends[1] = job
    else:
        state.behind[state.ends[2]] = job
    state.ends[2] = job
