"""Clients that send numbered messages by the clock and come back after a failure, and the programs at the hub
that take them.

A client has a connection of its own, notices that it is gone by its next message, retries at intervals, and
goes on with the message that was not acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import numpy as np

from twin.harness.brokers.interface import Broker, BrokerProblem, Connection, Message, Queue, Session
from twin.harness.ledger import SMALLEST_BYTES, Ledger
from twin.harness.measuring import clock

# the first connections are not what is measured: not all at once
_AT_ONCE = 20
# a call that takes longer has failed
_ANSWERING_S = 5.0
_CLOSING_S = 2.0
# the hub's programs are beside it and look more often
_HUB_RETRY_S = 0.1
# what a broken connection still held comes again, but later: not more than keeps a program busy
_PREFETCH = 10


@dataclass(frozen=True)
class Load:
    clients: int = 200
    # of all clients together
    offered_msgs_per_s: float = 200.0
    message_bytes: int = 4096
    # programs at the hub
    consumers: int = 4
    # from a failed attempt to the next, give or take the jitter, which is a share of it
    retry_interval_s: float = 1.0
    retry_jitter: float = 0.25
    seed: int = 1

    def __post_init__(self) -> None:
        if self.clients < 1 or self.consumers < 1 or self.offered_msgs_per_s <= 0:
            raise ValueError("there must be clients, consumers and messages")
        if self.message_bytes < SMALLEST_BYTES:
            raise ValueError(f"a numbered message has at least {SMALLEST_BYTES} bytes")
        if self.retry_interval_s <= 0 or not 0 <= self.retry_jitter <= 1:
            raise ValueError("clients retry at intervals, with a jitter of 0 to 1")


@dataclass(frozen=True)
class Return:
    """Of a client: when it was connected again, and what the attempt that succeeded took."""

    at: float
    took_s: float


class Clients:
    def __init__(self, broker: Broker, queue: Queue, load: Load, ledger: Ledger) -> None:
        self._broker, self._queue, self._load, self._ledger = broker, queue, load, ledger
        self._random = np.random.default_rng(load.seed)
        self._ended, self._sent_all = asyncio.Event(), asyncio.Event()
        self._started = 0.0
        self._lines: dict[int, tuple[Connection, Session]] = {}
        self.watch()

    @property
    def count(self) -> int:
        """Those that are connected, as far as they have noticed."""
        return len(self._lines)

    def watch(self) -> None:
        """From now on it counts who goes and who comes back."""
        self.none_left_at: float | None = None
        self.all_back_at: float | None = None
        self.returns: dict[int, Return] = {}
        self.failed_attempts = 0

    def intended(self, client: int, number: int) -> float:
        """When a message is to be sent: clients take turns."""
        turn = number * self._load.clients + client
        return self._started + turn / self._load.offered_msgs_per_s

    def due(self) -> int:
        """Messages that should have been sent by now."""
        return int((clock() - self._started) * self._load.offered_msgs_per_s)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        room = asyncio.Semaphore(_AT_ONCE)

        async def connect(client: int) -> None:
            async with room:
                await self._connect(client)

        connecting = [asyncio.create_task(connect(client)) for client in range(self._load.clients)]
        try:
            await asyncio.gather(*connecting)
            yield
        finally:
            for task in connecting:
                task.cancel()
            await asyncio.gather(*connecting, return_exceptions=True)
            lines, self._lines = self._lines, {}
            await asyncio.gather(*(_close(connection) for connection, _ in lines.values()))

    async def send(self) -> None:
        self._started = clock()
        async with asyncio.TaskGroup() as group:
            for client in range(self._load.clients):
                group.create_task(self._send_by_the_clock(client))
        self._sent_all.set()

    async def end(self) -> None:
        """Returns when the last message is acknowledged or has failed."""
        self._ended.set()
        await self._sent_all.wait()

    async def _send_by_the_clock(self, client: int) -> None:
        while not await self._ended_before(self.intended(client, self._ledger.next_number(client))):
            try:
                await self._put(client)
            except BrokerProblem:
                await self._drop(client)
                await self._return(client)

    async def _put(self, client: int) -> None:
        _, session = self._lines[client]
        body = self._ledger.put(client, self._load.message_bytes)
        async with _in_time():
            await session.put([Message(self._queue, body)])
        self._ledger.acknowledge(client)

    async def _drop(self, client: int) -> None:
        connection, _ = self._lines.pop(client)
        if not self._lines and self.none_left_at is None:
            self.none_left_at = clock()
        await _close(connection)

    async def _return(self, client: int) -> None:
        jitter = self._load.retry_jitter
        while True:
            wait_s = self._load.retry_interval_s * self._random.uniform(1 - jitter, 1 + jitter)
            if await self._ended_before(clock() + wait_s):
                return
            began = clock()
            try:
                await self._connect(client)
            except BrokerProblem:
                self.failed_attempts += 1
                continue
            self.returns.setdefault(client, Return(clock(), clock() - began))
            if self.count == len(self.returns) == self._load.clients and self.all_back_at is None:
                self.all_back_at = clock()
            return

    async def _connect(self, client: int) -> None:
        async with _in_time():
            connection = await self._broker.connect()
            try:
                self._lines[client] = connection, await connection.session()
            except BaseException:
                await _close(connection)
                raise

    async def _ended_before(self, moment: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(moment - clock(), 0)):
                await self._ended.wait()
        return self._ended.is_set()


async def take_all(hub: Broker, queue: Queue, arrived: Callable[[bytes], None]) -> None:
    """One program, until it is cancelled; it too comes back when the broker does."""
    while True:
        with suppress(BrokerProblem):
            connection = await hub.connect()
            try:
                consumer = await (await connection.session()).consume(queue, _PREFETCH)
                while True:
                    delivery = await consumer.get()
                    arrived(delivery.body)
                    # where the connection is gone, what came before is still to be had
                    with suppress(BrokerProblem):
                        await consumer.done([delivery])
            finally:
                await _close(connection)
        await asyncio.sleep(_HUB_RETRY_S)


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(_ANSWERING_S):
            yield
    except TimeoutError as error:
        raise BrokerProblem(f"the broker did not answer within {_ANSWERING_S:g} s") from error


async def _close(connection: Connection) -> None:
    """A connection that is broken has nothing to say about it."""
    with suppress(BrokerProblem, TimeoutError):
        async with asyncio.timeout(_CLOSING_S):
            await connection.close()
