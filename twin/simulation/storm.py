"""The storm when a failed network comes back: thousands of channels that all want to start again.

The network is cut. Each channel notices at its next heartbeat and from then on retries on its own timer. Once
the network is back a start has two parts: the connection, which costs processor time whatever becomes of it,
and the start proper, for which channels wait in turn. Whom nobody turns to in time gives up and retries. The
upkeep of those that run again takes processors from those that do not. Messages take turns on the channels
that run, as soon as there are any; but an application whose message was caught in a channel waits until that
one runs again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np

from twin.queueing.network import Array, BadNetwork
from twin.simulation.compiling import MOST_JOBS
from twin.simulation.engine import Floats, Whole
from twin.simulation.heaps import pop, push

# a rate is the messages of so many seconds; it is the former one again when less than half of what one
# application sends is missing
_WINDOW_S = 10
_MISSING = 0.5
# how long the hub is watched before it is cut off
_BEFORE_S = 30
# who is not back after so many retries never comes back
_RETRIES = 60
_STEP_S = 60.0
_LONGEST_S = 1_000_000

# what can happen to a channel or an application
_CUT, _RETRY, _GIVE_UP, _ERRORS_WRITTEN, _SEND, _REPLY = range(6)
_KINDS = 6
# what a channel does
_RUNNING, _WAITING, _LOGGING, _CONNECTING, _QUEUED, _STARTING = range(6)
_NONE = -1


class Storm(NamedTuple):
    """One hub with its channels; times in seconds."""

    channels: int
    processors: float
    # processor time of a start; the part of it that a start which fails takes too
    start_work: float
    connect_work: float
    # time on the disk for the errors that one attempt writes to the log
    error_writing: float
    # how long a channel waits for the hub to turn to it
    patience: float
    retry_interval: float
    heartbeat: float
    # channels that the desktop heap has room for, running or on their way
    room: float
    # processors that the upkeep of r channels takes: r (each + crowding r), but not more than `most_upkeep`
    upkeep_each: float
    upkeep_crowding: float
    most_upkeep: float
    applications: int
    # from one message of an application to its next
    pace: float
    message_work: float
    # a message's time away from the processors
    message_rest: float
    # how much longer a message stays in a channel that was down
    caught: float
    # another hub takes the messages that this one cannot
    second_hub: bool = False


@dataclass(frozen=True)
class Recovery:
    """Second by second from `_BEFORE_S` before the cut: channels that run, messages completed, processors in
    use, starts that were given up. Then when the last channel was down after the cut, and when the last one
    and the whole rate were back after the network was, if ever."""

    running: Array
    messages: Array
    busy: Array
    given_up: Array
    # from the cut to the return of the network
    outage: float
    dropped: float | None
    channel_recovery: float | None
    throughput_recovery: float | None
    heap_ran_out: bool
    # messages a second before the cut
    before: float

    @property
    def time(self) -> Array:
        """From the return of the network."""
        return np.arange(len(self.running), dtype=np.float64) - _BEFORE_S - self.outage


def recover(storm: Storm, seed: int = 1) -> Recovery:
    _check(storm)
    random = np.random.default_rng(seed)
    # nobody brings the network back before the last channel is down
    outage = storm.heartbeat + 1
    horizon = _BEFORE_S + outage + _RETRIES * storm.retry_interval
    seconds = math.ceil(horizon) + 1
    back = _BEFORE_S + outage
    track = _Track(*np.zeros((4, seconds)), *np.array([[np.nan, np.nan, 0.0]]))
    state = _at_start(storm, random)
    end = float(_BEFORE_S)
    while end < horizon and np.isnan(track.told[1]):
        end = min(end + _STEP_S, horizon)
        _play(storm, state, track, random, end, back)
    if np.isfinite(track.told[1]):
        # messages come back after the channels
        end = max(end, min(track.told[1] + 2 * storm.retry_interval + _WINDOW_S, horizon))
        _play(storm, state, track, random, end, back)
    running, messages, busy, given_up = (one[: int(end)] for one in track[:4])
    return Recovery(
        running=running,
        messages=messages,
        busy=busy,
        given_up=given_up,
        outage=outage,
        dropped=_since(track.told[0], _BEFORE_S),
        channel_recovery=_since(track.told[1], back),
        throughput_recovery=_full_again(messages, storm, back) if np.isfinite(track.told[1]) else None,
        heap_ran_out=bool(track.told[2] > 0),
        before=float(messages[_WINDOW_S:_BEFORE_S].mean()),
    )


def _since(time: float, start: float) -> float | None:
    return float(time - start) if np.isfinite(time) else None


def _full_again(messages: Array, storm: Storm, back: float) -> float | None:
    """From the network's return to the first window from which on the rate stays as before."""
    full = messages[_WINDOW_S:_BEFORE_S].mean() * (1 - _MISSING / storm.applications)
    rates = np.convolve(messages, np.full(_WINDOW_S, 1 / _WINDOW_S), "valid")
    low = np.flatnonzero(rates < full)
    low = low[low >= back - _WINDOW_S]
    if not len(low):
        return 0.0
    after = low[-1] + 1
    return max(float(after - back), 0.0) if after < len(rates) else None


def _check(storm: Storm) -> None:
    if not 1 <= storm.channels <= MOST_JOBS:
        raise BadNetwork(f"channels are {storm.channels}, not 1 to {MOST_JOBS}")
    for name in ("processors", "patience", "retry_interval", "heartbeat"):
        if not (math.isfinite(value := getattr(storm, name)) and value > 0):
            raise BadNetwork(f"{name} is {value:g}")
    if storm.heartbeat + _RETRIES * storm.retry_interval > _LONGEST_S:
        raise BadNetwork(f"heartbeats and {_RETRIES} retries take longer than {_LONGEST_S} s")
    if storm.channels * storm.patience / storm.retry_interval > MOST_JOBS:
        raise BadNetwork(f"{storm.channels} channels retry every {storm.retry_interval:g} s: too many")
    if not math.isfinite(storm.pace) or storm.pace + storm.message_work + storm.message_rest <= 0:
        raise BadNetwork(f"an application sends a message every {storm.pace:g} s")
    if not 0 <= storm.connect_work <= storm.start_work:
        raise BadNetwork(f"connecting is {storm.connect_work:g} s of a start of {storm.start_work:g} s")


class _Track(NamedTuple):
    """Per second; and when the last channel fell, when the last came back, starts that found no heap."""

    running: Floats
    messages: Floats
    busy: Floats
    given_up: Floats
    told: Floats


class _State(NamedTuple):
    # the clock; service that each thread has received so far; when the disk is free
    clock: Floats
    # events, threads, channels that run and that start; the queue of those that wait for their turn: its
    # first and the one after its last; channels that hold a part of the heap
    counts: Whole
    event_at: Floats
    event: Whole
    thread_end: Floats
    thread: Whole
    doing: Whole
    # when a channel's last attempt began, when its errors are written, whether it has given up connecting
    attempted: Floats
    written: Floats
    abandoned: Whole
    queue: Whole
    queue_stamp: Floats
    # per application: the channel that its message is caught in, and when it was sent
    caught_in: Whole
    sent: Floats


def _at_start(storm: Storm, random: np.random.Generator) -> _State:
    channels, applications = storm.channels, storm.applications
    overlapping = 4 + math.ceil(storm.patience / storm.retry_interval)
    events = channels * overlapping + 2 * applications
    state = _State(
        clock=np.zeros(3),
        counts=np.array([0, 0, channels, 0, 0, 0, channels], np.int64),
        event_at=np.zeros(events),
        event=np.zeros(events, np.int64),
        thread_end=np.zeros(channels + applications),
        thread=np.zeros(channels + applications, np.int64),
        doing=np.full(channels, _RUNNING, np.int64),
        attempted=np.zeros(channels),
        written=np.zeros(channels),
        abandoned=np.zeros(channels, np.int64),
        queue=np.zeros(channels * overlapping, np.int64),
        queue_stamp=np.zeros(channels * overlapping),
        caught_in=np.full(applications, _NONE, np.int64),
        sent=np.zeros(applications),
    )
    noticed = _BEFORE_S + random.uniform(0, storm.heartbeat, channels)
    starts = random.uniform(0, storm.pace, applications)
    times = np.concatenate([noticed, starts])
    codes = np.concatenate(
        [np.arange(channels) * _KINDS + _CUT, (channels + np.arange(applications)) * _KINDS + _SEND]
    )
    order = np.argsort(times)
    # a sorted list is a heap
    state.event_at[: len(times)], state.event[: len(times)] = times[order], codes[order]
    state.counts[0] = len(times)
    return state


@numba.njit(cache=True, error_model="numpy")
def _play(storm, state, track, random, until, back):  # type: ignore[no-untyped-def]
    now, served, disk_free = state.clock
    events, threads, running, starting, queue_first, queue_end, holding = state.counts
    event_at, event, thread_end, thread = state.event_at, state.event, state.thread_end, state.thread
    doing, attempted, written, abandoned = state.doing, state.attempted, state.written, state.abandoned
    queue, queue_stamp = state.queue, state.queue_stamp
    caught_in, sent = state.caught_in, state.sent
    channels, at_once = storm.channels, math.ceil(storm.processors)

    while True:
        upkeep = min(running * (storm.upkeep_each + storm.upkeep_crowding * running), storm.most_upkeep)
        speed = min(1.0, (storm.processors - upkeep) / max(threads, 1))
        thread_due = now + (thread_end[0] - served) / speed if threads > 0 else np.inf
        event_due = event_at[0] if events > 0 else np.inf
        then = min(thread_due, event_due, until)
        # the seconds that pass meanwhile
        since = now
        while since < then:
            second = int(since)
            to = min(then, second + 1.0)
            track.busy[second] += (to - since) * (upkeep + speed * threads)
            track.running[second] += (to - since) * running
            since = to
        served = served + (then - now) * speed if threads > 0 else 0.0
        now = then
        if now >= until:
            break
        second = int(now)
        admit = False

        if thread_due <= event_due:
            who = pop(0, threads, thread_end, thread)
            threads -= 1
            if who >= channels:
                one = who - channels
                if running > 0 and not _BEFORE_S <= now < back:
                    push(now + storm.message_rest, who * _KINDS + _REPLY, 0, events, event_at, event)
                    events += 1
                elif storm.second_hub:
                    # its reply waits here, but others go on with the other hub
                    again = max(now, sent[one] + storm.pace)
                    push(again, who * _KINDS + _SEND, 0, events, event_at, event)
                    events += 1
                else:
                    caught_in[one] = int(random.random() * channels)
            elif doing[who] == _STARTING:
                doing[who] = _RUNNING
                running += 1
                starting -= 1
                admit = True
                if running == channels:
                    track.told[1] = now
                for one in range(len(caught_in)):
                    if caught_in[one] == who:
                        caught_in[one] = _NONE
                        code = (channels + one) * _KINDS + _REPLY
                        push(now + storm.caught, code, 0, events, event_at, event)
                        events += 1
            elif abandoned[who]:
                doing[who] = _WAITING
                abandoned[who] = 0
                holding -= 1
            else:
                doing[who] = _QUEUED
                queue[queue_end] = who
                queue_stamp[queue_end] = attempted[who]
                queue_end = (queue_end + 1) % len(queue)
                admit = True
        else:
            code = pop(0, events, event_at, event)
            events -= 1
            who, kind = code // _KINDS, code % _KINDS
            connect = False
            if kind == _CUT:
                doing[who] = _WAITING
                running -= 1
                holding -= 1
                if running == 0:
                    track.told[0] = now
                # timers drift apart as long as the network is away
                first_retry = back + random.random() * storm.retry_interval
                push(first_retry, who * _KINDS + _RETRY, 0, events, event_at, event)
                events += 1
            elif kind == _RETRY:
                if storm.error_writing > 0:
                    disk_free = max(disk_free, now) + storm.error_writing
                attempted[who] = now
                push(now + storm.patience, who * _KINDS + _GIVE_UP, 0, events, event_at, event)
                events += 1
                if doing[who] == _CONNECTING:
                    # the hub is still at its last attempt, which will serve for this one
                    abandoned[who] = 0
                elif storm.error_writing > 0:
                    doing[who] = _LOGGING
                    written[who] = disk_free
                    # what is not written in time never matters to it
                    if disk_free < now + storm.patience:
                        push(disk_free, who * _KINDS + _ERRORS_WRITTEN, 0, events, event_at, event)
                        events += 1
                else:
                    connect = True
            elif kind == _ERRORS_WRITTEN:
                connect = doing[who] == _LOGGING and written[who] == now
            elif kind == _GIVE_UP:
                if attempted[who] + storm.patience == now and _LOGGING <= doing[who] <= _QUEUED:
                    track.given_up[second] += 1
                    if doing[who] == _CONNECTING:
                        abandoned[who] = 1
                    else:
                        holding -= doing[who] == _QUEUED
                        doing[who] = _WAITING
                    # the timer runs from one attempt to the next
                    again = max(attempted[who] + storm.retry_interval, now)
                    push(again, who * _KINDS + _RETRY, 0, events, event_at, event)
                    events += 1
            elif kind == _REPLY:
                one = who - channels
                track.messages[second] += 1
                push(max(now, sent[one] + storm.pace), who * _KINDS + _SEND, 0, events, event_at, event)
                events += 1
            else:
                one = who - channels
                sent[one] = now
                reached = running > 0 and not _BEFORE_S <= now < back
                # another hub takes half of the messages, or all of them
                if storm.second_hub and (not reached or random.random() < 0.5):
                    push(now + storm.message_rest, who * _KINDS + _REPLY, 0, events, event_at, event)
                    events += 1
                elif reached:
                    work = storm.message_work * random.standard_exponential()
                    push(served + work, who, 0, threads, thread_end, thread)
                    threads += 1
                else:
                    caught_in[one] = int(random.random() * channels)
            if connect and holding + 1 > storm.room:
                track.told[2] += 1
                track.given_up[second] += 1
                doing[who] = _WAITING
                push(now + storm.retry_interval, who * _KINDS + _RETRY, 0, events, event_at, event)
                events += 1
            elif connect:
                doing[who] = _CONNECTING
                holding += 1
                push(served + storm.connect_work, who, 0, threads, thread_end, thread)
                threads += 1

        # whose turn it is: as many at once as there are processors
        while admit and starting < at_once and queue_first != queue_end:
            who, stamp = queue[queue_first], queue_stamp[queue_first]
            queue_first = (queue_first + 1) % len(queue)
            if doing[who] != _QUEUED or attempted[who] != stamp:
                continue
            doing[who] = _STARTING
            starting += 1
            push(served + storm.start_work - storm.connect_work, who, 0, threads, thread_end, thread)
            threads += 1

    state.clock[0], state.clock[1], state.clock[2] = now, served, disk_free
    state.counts[0], state.counts[1], state.counts[2] = events, threads, running
    state.counts[3], state.counts[4], state.counts[5] = starting, queue_first, queue_end
    state.counts[6] = holding
