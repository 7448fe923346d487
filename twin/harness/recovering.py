"""A hub loses all its clients at once and gets them back: how long that takes, and whether anything is lost.

As in the report on large clusters: many clients send persistent messages at a steady rate in all, the network
near the hub fails until every one of them has noticed, and comes back. The programs that take the messages
are at the hub, so a cut does not reach them. What was acknowledged and has not arrived when clients have
stopped and nothing new has come for `draining_s` is lost.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, TypeVar

from twin.harness.brokers.interface import Broker, BrokerProblem, Queue
from twin.harness.driving import declared, working
from twin.harness.failures import Failure
from twin.harness.ledger import Ledger
from twin.harness.measuring import Meter, clock
from twin.harness.reconnecting import Clients, Load, take_all

_Reached = TypeVar("_Reached")
# A rate is that of a second. It is the old one again when no more than this share is missing and it is not
# above what is offered by more than this share either: that would be backlog.
_WINDOW_S = 1.0
_WITHIN = 0.05
# once nothing came for so long, no copy of a message is under way any more
_QUIET_S = 0.5
_POLL_S = 0.02
# each client has a socket and two more in a proxy of this process; what else is open
_FILES_EACH, _FILES = 3, 100


@dataclass(frozen=True)
class Course:
    """Of an experiment, in seconds."""

    # before the failure, at the least; the first second of it is warm-up
    steady_s: float = 4.0
    # how long beyond it waits for the offered rate: a machine that stood still has to catch up first
    settling_s: float = 10.0
    # at the least: longer where clients have not noticed
    outage_s: float = 2.0
    # how long it waits for clients to notice, and for recovery
    patience_s: float = 60.0
    # how long it waits for the next message that is missing
    draining_s: float = 10.0
    # of the samples
    interval_s: float = 0.1

    def __post_init__(self) -> None:
        if self.steady_s < 2 * _WINDOW_S or not 0 < self.interval_s <= _WINDOW_S / 2:
            raise ValueError(f"rates need {2 * _WINDOW_S:g} s and intervals of at most {_WINDOW_S / 2:g} s")


@dataclass(frozen=True)
class Recovery:
    """Times in seconds; None where it did not happen within the patience."""

    # on the clock of the samples
    failed_at_s: float
    restored_at_s: float
    before_msgs_per_s: float
    # from the failure until no client was connected
    channel_drop_s: float | None
    # from the restoration until all clients were
    channel_recovery_s: float | None
    # from the restoration until the beginning of the first second with all clients and the old rate
    throughput_recovery_s: float | None
    # of each client, from the restoration, and what its attempt that succeeded took; the least first
    reconnected_s: list[float]
    connecting_s: list[float]
    failed_attempts: int
    acknowledged: int
    # each message once, those included whose acknowledgement was not heard
    received: int
    # further copies: put again because the acknowledgement was not heard, or delivered again
    duplicated: int
    lost: int
    # client and number of the first few
    some_lost: list[tuple[int, int]]
    # that no client has put
    foreign: int
    # `threads` are connected clients, `backlog_msgs` what was due and has not arrived
    samples: list[dict[str, Any]]


async def recover(
    clients: Broker,
    hub: Broker,
    failure: Failure,
    load: Load | None = None,
    course: Course | None = None,
    meter: Meter | None = None,
) -> Recovery:
    """`clients` is the broker as they reach it, through whatever fails; `hub` as its own programs do."""
    load = load or Load()
    _check_open_files(load.clients)
    queue = Queue(f"twin-recovery-{secrets.token_hex(4)}", persistent=True)
    async with declared(hub, [queue]):
        run = _Run(clients, queue, load, meter or Meter())
        return await run.measured(hub, failure, course or Course())


class _Run:
    def __init__(self, clients: Broker, queue: Queue, load: Load, meter: Meter) -> None:
        self._ledger = Ledger(load.clients)
        self._clients = Clients(clients, queue, load, self._ledger)
        self._queue, self._load, self._meter = queue, load, meter
        self._began = self._last_arrival = self._last_new = 0.0
        self._sent = 0

    async def measured(self, hub: Broker, failure: Failure, course: Course) -> Recovery:
        clients, ledger = self._clients, self._ledger
        programs = (take_all(hub, self._queue, self._take) for _ in range(self._load.consumers))
        async with clients.connected(), working(clients.send(), *programs):
            self._meter.begin()
            self._began = clock()
            async with working(self._tick(course.interval_s)):
                await asyncio.sleep(course.steady_s)
                await _until(partial(self._holds_the_load, course.steady_s - _WINDOW_S), course.settling_s)
                clients.watch()
                failed = clock()
                await failure.begin()
                try:
                    await asyncio.sleep(course.outage_s)
                    await _until(lambda: clients.count == 0, course.patience_s)
                finally:
                    restored = clock()
                    await failure.end()
                before = self._rate_before(failed, course.steady_s - _WINDOW_S)
                back = await _until(partial(self._old_rate_since, before), course.patience_s)
            await clients.end()
            await self._drain(course.draining_s)

        returns = clients.returns.values()
        return Recovery(
            failed_at_s=failed - self._began,
            restored_at_s=restored - self._began,
            before_msgs_per_s=before,
            channel_drop_s=_since(clients.none_left_at, failed),
            channel_recovery_s=_since(clients.all_back_at, restored),
            throughput_recovery_s=_since(back, restored - self._began),
            reconnected_s=sorted(one.at - restored for one in returns),
            connecting_s=sorted(one.took_s for one in returns),
            failed_attempts=clients.failed_attempts,
            acknowledged=ledger.acknowledged,
            received=ledger.received,
            duplicated=ledger.duplicated,
            lost=ledger.lost,
            some_lost=ledger.some_lost(),
            foreign=ledger.foreign,
            samples=self._meter.samples,
        )

    def _take(self, body: bytes) -> None:
        self._last_arrival = clock()
        first = self._ledger.take(body)
        if first is not None:
            self._last_new = clock()
            self._meter.done(self._clients.intended(*first))

    async def _drain(self, longest_s: float) -> None:
        """Ends: nothing new is put any more, and without anything new it waits no longer."""
        ended = clock()
        while clock() - max(ended, self._last_new) < longest_s:
            if self._ledger.lost == 0 and clock() - self._last_arrival >= _QUIET_S:
                return
            await asyncio.sleep(_POLL_S)

    async def _tick(self, interval_s: float) -> None:
        for number in count(1):
            await asyncio.sleep(max(self._began + number * interval_s - clock(), 0))
            acknowledged = self._ledger.acknowledged
            self._meter.sent(acknowledged - self._sent)
            self._sent = acknowledged
            self._meter.tick()
            self._meter.samples[-1] |= {
                "threads": self._clients.count,
                "backlog_msgs": max(self._clients.due() - self._ledger.received, 0),
            }

    def _samples(self, start_s: float, end_s: float) -> list[dict[str, Any]]:
        """Those that lie between these times."""
        return [
            one
            for one in self._meter.samples
            if one["at_s"] - one["interval_s"] >= start_s and one["at_s"] <= end_s
        ]

    def _rate_before(self, moment: float, seconds: float) -> float:
        end_s = moment - self._began
        return _rate(self._samples(end_s - seconds, end_s))

    def _holds_the_load(self, seconds: float) -> bool:
        return abs(self._rate_before(clock(), seconds) / self._load.offered_msgs_per_s - 1) <= _WITHIN

    def _old_rate_since(self, before: float) -> float | None:
        """The beginning of the latest second, if all clients were there and the rate was the old one."""
        last = self._meter.samples[-1]["at_s"]
        second = self._samples(last - _WINDOW_S - _POLL_S, last)
        began = second[0]["at_s"] - second[0]["interval_s"]
        if self._clients.all_back_at is None or began < self._clients.all_back_at - self._began:
            return None
        whole = all(one["threads"] == self._load.clients for one in second)
        offered = self._load.offered_msgs_per_s
        least, most = min(before, offered) * (1 - _WITHIN), offered * (1 + _WITHIN)
        return began if whole and least <= _rate(second) <= most else None


async def _until(reached: Callable[[], _Reached], longest_s: float) -> _Reached:
    """What it says first that is true, or last."""
    until = clock() + longest_s
    while not (found := reached()) and clock() < until:
        await asyncio.sleep(_POLL_S)
    return found


def _rate(samples: list[dict[str, Any]]) -> float:
    seconds = sum(one["interval_s"] for one in samples)
    return float(sum(one["messages"] for one in samples) / seconds) if seconds else 0.0


def _since(moment: float | None, start: float) -> float | None:
    return None if moment is None else moment - start


def _check_open_files(clients: int) -> None:
    import resource

    needed, allowed = clients * _FILES_EACH + _FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if needed > allowed:
        raise BrokerProblem(
            f"{clients} clients need some {needed} open files and {allowed} are allowed: raise `ulimit -n`"
        )
