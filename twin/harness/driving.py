"""What all drivers share: names of their own on a broker, and a run's course from warm-up to its end."""

from __future__ import annotations

import asyncio
import logging
import secrets
import struct
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from twin.harness.brokers.interface import Address, Broker, BrokerProblem, Connection, Session
from twin.harness.brokers.registry import Place
from twin.harness.experiments import Point
from twin.harness.measuring import Meter, clock

_LOG = logging.getLogger(__name__)
# Messages that may wait on queues, as in the reports: more would only wait longer, and a broker that pages or
# throttles because of a backlog measures something else.
DEPTH = 100
_LOOKING_S = 0.0005
# a run that is counted in messages ends after so many times its length in any case
_PATIENCE = 12
_CANCELLING_S = 0.05
_STAMP = struct.Struct("<d?")


@dataclass
class Run:
    """One point, once."""

    point: Point
    places: Sequence[Place]
    brokers: Sequence[Broker]
    meter: Meter
    # of everything that it makes on a broker
    prefix: str = field(default_factory=lambda: f"twin-{secrets.token_hex(4)}")
    # figures that a driver finds out beside what the meter counts
    figures: dict[str, float] = field(default_factory=dict)
    under_way: int = 0
    # a message has left
    _left: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def broker(self) -> Broker:
        return self.brokers[0]

    def column(self, name: str, absent: Any = None) -> Any:
        return self.point.columns.get(name, absent)

    def sent(self, count: int = 1) -> None:
        self.under_way += count
        self.meter.sent(count)

    def done(self, intended: float | None = None) -> None:
        self.under_way -= 1
        self._left.set()
        self.meter.done(intended)

    async def room(self, most: int) -> None:
        """Until less than so many messages are under way."""
        while self.under_way >= most:
            self._left.clear()
            await self._left.wait()

    async def measured(self) -> None:
        """Warm-up, then intervals until the run is long enough; drivers do their work beside."""
        plan = self.point.plan
        await asyncio.sleep(plan.warm_up_s)
        self.meter.begin()
        started = clock()
        if plan.messages is None or plan.messages_per_interval is None:
            for number in range(1, round(plan.length_s / plan.interval_s) + 1):
                await asyncio.sleep(max(started + number * plan.interval_s - clock(), 0))
                self.meter.tick()
            return
        for count in range(plan.messages_per_interval, plan.messages + 1, plan.messages_per_interval):
            while self.meter.messages < count and clock() - started < _PATIENCE * plan.length_s:
                await asyncio.sleep(_LOOKING_S)
            self.meter.tick()
            if self.meter.messages < count:
                return


@asynccontextmanager
async def working(*loops: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Loops that go on while the body runs; if one fails, the body ends with its reason."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in loops]
            yield
            while left := [task for task in tasks if not task.done()]:
                for task in left:
                    task.cancel()
                # again: a client library that got its answer in the same moment may swallow the first
                await asyncio.wait(left, timeout=_CANCELLING_S)
    except BaseExceptionGroup as failed:
        reason: BaseException = failed
        while isinstance(reason, BaseExceptionGroup):
            reason = reason.exceptions[0]
        raise reason from None


@asynccontextmanager
async def connected(broker: Broker, count: int = 1) -> AsyncIterator[list[Connection]]:
    async with AsyncExitStack() as stack:
        found = []
        for _ in range(count):
            connection = await broker.connect()
            stack.push_async_callback(connection.close)
            found.append(connection)
        yield found


@asynccontextmanager
async def declared(broker: Broker, addresses: Sequence[Address]) -> AsyncIterator[Session]:
    """Queues and topics that are gone afterwards, whatever happened to the connections in between. One that
    was there before, with other options, is a problem and stays."""
    made: list[Address] = []
    async with connected(broker) as (connection,):
        session = await connection.session()
        try:
            for address in addresses:
                await session.declare(address)
                made.append(address)
            yield session
        finally:
            await _removed(broker, made)


async def _removed(broker: Broker, addresses: Sequence[Address]) -> None:
    try:
        async with connected(broker) as (connection,):
            await (await connection.session()).remove(*addresses)
    except BrokerProblem as problem:
        # a broker that is gone cannot be tidied; why it is gone is told by whoever noticed first
        _LOG.warning("not removed: %s (%s)", ", ".join(one.name for one in addresses), problem)


class Body:
    """Bodies of a size that begin with when they were to be sent, and whether they end a unit of work; a size
    too small for that is just that many bytes."""

    def __init__(self, message_bytes: int) -> None:
        self._stamped = message_bytes >= _STAMP.size
        self._rest = bytes(message_bytes - _STAMP.size if self._stamped else message_bytes)

    def at(self, intended: float, last: bool = True) -> bytes:
        # a copy of its own each time, as a program would make it
        return _STAMP.pack(intended, last) + self._rest if self._stamped else bytes(self._rest)


def intended(body: bytes) -> float | None:
    return float(_STAMP.unpack_from(body)[0]) if len(body) >= _STAMP.size else None


def ends_unit(body: bytes) -> bool:
    return len(body) < _STAMP.size or bool(_STAMP.unpack_from(body)[1])
