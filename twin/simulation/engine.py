"""The compiled event loop.

Each station keeps its own services in a heap, by the time at which they end; a tournament over the stations
tells whose comes first. So an event costs the logarithm of what is in service at one station plus that of
the number of stations. Whoever is served in turn waits in a linked list. All state lies in arrays: the loop
stops after a number of messages or at a time, and goes on later as if nothing had been.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from twin.simulation.heaps import pop, push, replace
from twin.simulation.model import Act, Discipline, Origin

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
# jobs, stations, steps, classes: without a sign, or each use of one would first look whether it is negative
Places = npt.NDArray[np.uint32]

# the compiler wants plain numbers; a visit is the act before a take
_SHARED, _IN_TURN, _GROUPED = int(Discipline.SHARED), int(Discipline.IN_TURN), int(Discipline.GROUPED)
_TAKE = int(Act.TAKE)
_GIVE_BACK, _LEAVE_BEHIND = int(Act.GIVE_BACK), int(Act.LEAVE_BEHIND)
_CLOSED, _OPEN = int(Origin.CLOSED), int(Origin.OPEN)
NOBODY = np.uint32(0xFFFFFFFF)


class Stopped(IntEnum):
    """Why the loop returned."""

    ENOUGH_MESSAGES = 0
    TIME = 1
    # more jobs at once than there is room for
    FULL = 2
    # everybody waits for somebody
    STUCK = 3


_ENOUGH, _TIME = int(Stopped.ENOUGH_MESSAGES), int(Stopped.TIME)
_FULL, _STUCK = int(Stopped.FULL), int(Stopped.STUCK)


class Plan(NamedTuple):
    """What does not change while it runs, but between two runs of the loop it may."""

    # per station
    discipline: Whole
    servers: Floats
    heap_start: Whole
    # per step
    act: Whole
    # the first of equal stations and how many there are; for a job left behind, its class
    station: Places
    copies: Floats
    mean: Floats
    # per class
    first_step: Places
    origin: Whole
    rate: Floats
    # the classes whose jobs come from outside
    arriving: Places
    # 1 / variation² of all service times: 1 exponential, 0 stands for no variation
    shape: float


class State(NamedTuple):
    """Everything that changes."""

    clock: Floats
    # messages completed; jobs from outside that are under way
    counts: Whole
    # the first free job; the first and the last of those who can go on at once
    ends: Places
    # per station: those in service; seconds of service begun, or given where all are served at once or it is
    # held; when the latter was last known
    serving: Whole
    service: Floats
    seen_at: Floats
    # per station: service that each of those present has received so far, when all are served at once
    served: Floats
    heap_end: Floats
    heap_job: Places
    first: Places
    last: Places
    # per job
    behind: Places
    at_step: Places
    job_class: Places
    began: Floats
    work: Floats
    # when the next service of each station ends, then when the next job of each open class comes; the tree of
    # whose is first, with its root at 1 and its leaves in the second half
    due: Floats
    winner: Places
    # per completed message
    response: Floats
    ended: Floats
    message_class: Places


@numba.njit(cache=True, error_model="numpy")
def _announce(source, time, due, winner):  # type: ignore[no-untyped-def]
    """Who is next, after the time of one source has changed."""
    due[source] = time
    node = (len(due) + source) >> 1
    while node >= 1:
        one, other = winner[2 * node], winner[2 * node + 1]
        winner[node] = one if due[one] <= due[other] else other
        node >>= 1


@numba.njit(cache=True, error_model="numpy")
def _drawn(mean, shape, random):  # type: ignore[no-untyped-def]
    if shape == 1.0:
        return mean * random.standard_exponential()
    if shape == 0.0:
        return mean
    return mean * random.standard_gamma(shape) / shape


@numba.njit(cache=True, error_model="numpy")
def run(plan, state, random, messages, until):  # type: ignore[no-untyped-def]
    """Goes on until so many messages have been completed in all, or until that time."""
    discipline, servers, heap_start = plan.discipline, plan.servers, plan.heap_start
    act, station_of, copies, mean = plan.act, plan.station, plan.copies, plan.mean
    first_step, origin, rate, shape = plan.first_step, plan.origin, plan.rate, plan.shape
    serving, service, seen_at, served = state.serving, state.service, state.seen_at, state.served
    heap_end, heap_job = state.heap_end, state.heap_job
    first, last, behind = state.first, state.last, state.behind
    at_step, job_class, began, work = state.at_step, state.job_class, state.began, state.work
    due, winner = state.due, state.winner
    response, ended, message_class = state.response, state.ended, state.message_class
    stations = len(discipline)
    now, done, inside = state.clock[0], state.counts[0], state.counts[1]
    free, ready, ready_last = state.ends[0], state.ends[1], state.ends[2]
    why = _ENOUGH

    while done < messages:
        if ready == NOBODY:
            source = winner[1]
            if due[source] > until:
                now = until
                why = _TIME
                break
            if due[source] == np.inf:
                why = _STUCK
                break
            now = due[source]
            if source >= stations:
                # a job comes from outside
                arrived = plan.arriving[source - stations]
                _announce(source, now + random.standard_exponential() / rate[arrived], due, winner)
                job = free
                if job == NOBODY:
                    why = _FULL
                    break
                free = behind[job]
                inside += 1
                job_class[job] = arrived
                at_step[job] = first_step[arrived]
                began[job] = now
                behind[job] = NOBODY
                ready = ready_last = job
            else:
                k = source
                start = heap_start[k]
                if discipline[k] == _SHARED:
                    service[k] += (now - seen_at[k]) * min(serving[k], servers[k])
                    seen_at[k] = now
                    served[k] = heap_end[start]
                    job = pop(start, serving[k], heap_end, heap_job)
                    serving[k] -= 1
                    if serving[k] > 0:
                        speed = min(1.0, servers[k] / serving[k])
                        _announce(k, now + (heap_end[start] - served[k]) / speed, due, winner)
                    else:
                        served[k] = 0.0
                        _announce(k, np.inf, due, winner)
                    behind[job] = NOBODY
                    ready = ready_last = job
                elif discipline[k] == _IN_TURN:
                    job = heap_job[start]
                    if first[k] != NOBODY:
                        other = first[k]
                        first[k] = behind[other]
                        service[k] += work[other]
                        replace(now + work[other], other, start, serving[k], heap_end, heap_job)
                        _announce(k, heap_end[start], due, winner)
                    else:
                        pop(start, serving[k], heap_end, heap_job)
                        serving[k] -= 1
                        _announce(k, heap_end[start] if serving[k] > 0 else np.inf, due, winner)
                    behind[job] = NOBODY
                    ready = ready_last = job
                else:
                    # a force has ended: whom it served goes on, and who came meanwhile goes into the next
                    ready = heap_job[start]
                    ready_last = ready
                    while behind[ready_last] != NOBODY:
                        ready_last = behind[ready_last]
                    serving[k] = 0
                    if first[k] != NOBODY:
                        most = int(servers[k])
                        if random.random() < servers[k] - most:
                            most += 1
                        heap_job[start] = first[k]
                        served_last = first[k]
                        serving[k] = 1
                        while serving[k] < most and behind[served_last] != NOBODY:
                            served_last = behind[served_last]
                            serving[k] += 1
                        first[k] = behind[served_last]
                        behind[served_last] = NOBODY
                        service[k] += work[heap_job[start]]
                        _announce(k, now + work[heap_job[start]], due, winner)
                    else:
                        _announce(k, np.inf, due, winner)

        while ready != NOBODY:
            job = ready
            ready = behind[job]
            while True:
                step = at_step[job]
                at_step[job] = step + 1
                what = act[step]
                k = station_of[step]
                if copies[step] > 1.0:
                    k = np.uint32(k + int(random.random() * copies[step]))
                if what <= _TAKE:
                    if what == _TAKE:
                        service[k] += (now - seen_at[k]) * serving[k]
                        seen_at[k] = now
                        if serving[k] < servers[k]:
                            serving[k] += 1
                            continue
                    else:
                        work[job] = _drawn(mean[step], shape, random)
                        start = heap_start[k]
                        if discipline[k] == _SHARED:
                            if serving[k] > 0:
                                working = min(serving[k], servers[k])
                                service[k] += (now - seen_at[k]) * working
                                served[k] += (now - seen_at[k]) * working / serving[k]
                            seen_at[k] = now
                            push(served[k] + work[job], job, start, serving[k], heap_end, heap_job)
                            serving[k] += 1
                            speed = min(1.0, servers[k] / serving[k])
                            _announce(k, now + (heap_end[start] - served[k]) / speed, due, winner)
                            break
                        if discipline[k] == _IN_TURN:
                            if serving[k] < servers[k]:
                                service[k] += work[job]
                                push(now + work[job], job, start, serving[k], heap_end, heap_job)
                                serving[k] += 1
                                _announce(k, heap_end[start], due, winner)
                                break
                        elif serving[k] == 0:
                            service[k] += work[job]
                            heap_job[start] = job
                            behind[job] = NOBODY
                            serving[k] = 1
                            _announce(k, now + work[job], due, winner)
                            break
                    # it has to wait in line
                    behind[job] = NOBODY
                    if first[k] == NOBODY:
                        first[k] = job
                    else:
                        behind[last[k]] = job
                    last[k] = job
                    break
                if what == _GIVE_BACK:
                    service[k] += (now - seen_at[k]) * serving[k]
                    seen_at[k] = now
                    if first[k] != NOBODY and serving[k] <= servers[k]:
                        # it goes from hand to hand
                        other = first[k]
                        first[k] = behind[other]
                        behind[other] = NOBODY
                        if ready == NOBODY:
                            ready = other
                        else:
                            behind[ready_last] = other
                        ready_last = other
                    else:
                        serving[k] -= 1
                    continue
                if what == _LEAVE_BEHIND:
                    left = free
                    if left == NOBODY:
                        why = _FULL
                        break
                    free = behind[left]
                    job_class[left] = k
                    at_step[left] = first_step[k]
                    began[left] = now
                    behind[left] = NOBODY
                    if ready == NOBODY:
                        ready = left
                    else:
                        behind[ready_last] = left
                    ready_last = left
                    continue
                # the end
                c = job_class[job]
                if origin[c] <= _OPEN:
                    if done < len(response):
                        response[done] = now - began[job]
                        ended[done] = now
                        message_class[done] = c
                    done += 1
                if origin[c] == _CLOSED:
                    began[job] = now
                    at_step[job] = first_step[c]
                    continue
                if origin[c] == _OPEN:
                    inside -= 1
                behind[job] = free
                free = job
                break
        if why == _FULL:
            break

    state.clock[0] = now
    state.counts[0] = done
    state.counts[1] = inside
    state.ends[0] = free
    state.ends[1] = ready
    state.ends[2] = ready_last
    return why


@numba.njit(cache=True, error_model="numpy")
def settle(state):  # type: ignore[no-untyped-def]
    """Find out anew who is next, after times were set from outside."""
    for source in range(len(state.due)):
        _announce(source, state.due[source], state.due, state.winner)


def why_stopped(
    plan: Plan, state: State, random: np.random.Generator, messages: int, until: float
) -> Stopped:
    answer: Any = run(plan, state, random, messages, until)
    return Stopped(answer)
