"""A flow worker between a driver's puts and gets: node kinds, hubs, loops through two brokers."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

from twin.core.workloads.live import LiveFlow
from twin.harness.brokers.interface import BrokerProblem, Consumer, Delivery, Message, Queue, Session
from twin.harness.driving import Run, connected, declared, working
from twin.harness.flow.addresses import FlowAddresses, addresses_of
from twin.harness.flow.database import DatabasePlace, prepared_database
from twin.harness.flow.formats import sample
from twin.harness.flow.outputs import PUBLISHED, to_matching
from twin.harness.flow.plan import Plan
from twin.harness.flow.workers import Workers
from twin.harness.measuring import ProcessorTime, clock

# when a message was to be sent, as it goes through the worker
_SENT = "sent"
# the driver puts a quarter of what it keeps waiting at a time: single puts would wait for the disk each
_QUARTER = 4
# messages that differ: made before the run, because making one costs more than many a flow
_DIFFERENT = 50
_WATCHING_S = 0.05
_POSTGRESQL = "TWIN_POSTGRESQL_URL"


@dataclass(frozen=True)
class Made:
    """A body, and how many copies of it come out of the flow."""

    body: bytes
    copies: int


class Flowing:
    """A flow with its driver: what is put in, and what comes out of it."""

    def __init__(self, run: Run, session: Session, consumers: Sequence[Consumer]) -> None:
        self._run, self._session, self.consumers = run, session, consumers
        self.flow = cast(LiveFlow, run.point.configuration.workload)
        self.addresses = FlowAddresses.of(self.flow, run.prefix)
        self._made = _bodies(self.flow, self.addresses)
        self._numbers = count()
        # copies that have not come out yet, by the time at which their message was to be sent
        self._missing: dict[str, int] = {}

    async def put(self, messages: int, since: float | None = None) -> None:
        """In one unit of work, in turn to each of the input queues."""
        unit = []
        for _ in range(messages):
            number = next(self._numbers)
            made = self._made[number % len(self._made)]
            # the number makes it unique where several are due at once
            sent = f"{clock() if since is None else since!r}/{number}"
            self._missing[sent] = made.copies
            queue = self.addresses.inputs[number % len(self.addresses.inputs)]
            unit.append(Message(queue, made.body, headers={_SENT: sent}))
        self._run.sent(messages)
        await self._session.put(unit)

    async def take(self, consumer: Consumer) -> None:
        while True:
            delivery = await consumer.get()
            await consumer.done([delivery])
            self._taken(delivery)

    def _taken(self, delivery: Delivery) -> None:
        sent = delivery.headers.get(_SENT, "")
        if sent not in self._missing:
            return
        self._missing[sent] -= 1
        if not self._missing[sent]:
            del self._missing[sent]
            self._run.done(float(sent.partition("/")[0]))


async def flowing(run: Run) -> None:
    async with running_flow(run) as flowing, working(*loops(flowing), _feed(run, flowing)):
        await run.measured()


def loops(flowing: Flowing) -> list[Coroutine[Any, Any, None]]:
    return [flowing.take(consumer) for consumer in flowing.consumers]


async def _feed(run: Run, flowing: Flowing) -> None:
    """A batch that goes round goes in at once; else a quarter of what is kept waiting."""
    window = flowing.flow.window
    unit = min(window, max(flowing.flow.messages_per_commit, window // _QUARTER))
    while True:
        await run.room(window - unit + 1)
        await flowing.put(unit)


@asynccontextmanager
async def running_flow(run: Run) -> AsyncIterator[Flowing]:
    """Everything up, workers and all; nothing of it left afterwards."""
    flow = cast(LiveFlow, run.point.configuration.workload)
    addresses = FlowAddresses.of(flow, run.prefix)
    async with AsyncExitStack() as stack:
        database = stack.enter_context(_database(flow))
        sessions = [
            await stack.enter_async_context(declared(broker, addresses_of(flow, run.prefix, number)))
            for number, broker in enumerate(run.brokers)
        ]
        (connection,) = await stack.enter_async_context(connected(run.brokers[-1]))
        consumers = await _outputs(await connection.session(), flow, addresses)
        for one in consumers:
            stack.push_async_callback(one.close)
        plan = Plan(flow, run.prefix, run.places[: len(run.brokers)], database)
        workers = await stack.enter_async_context(Workers(plan))
        run.meter.processors["worker"] = ProcessorTime(workers.process_ids)
        async with working(_watch(workers)):
            yield Flowing(run, sessions[0], consumers)


async def _outputs(session: Session, flow: LiveFlow, addresses: FlowAddresses) -> list[Consumer]:
    if addresses.topic is not None:
        subscribers = flow.subscribers or 1
        return [await session.subscribe(addresses.topic, PUBLISHED) for _ in range(subscribers)]
    queues: Sequence[Queue] = [addresses.output] if addresses.output else addresses.subscribers
    return [await session.consume(queue) for queue in queues]


def _bodies(flow: LiveFlow, addresses: FlowAddresses) -> list[Made]:
    """Of messages that somebody wants: one that no subscriber asks for would never come out."""
    found = []
    for number in range(1, _DIFFERENT + 1):
        body = sample(flow.input_format, flow.message_bytes, number)
        copies = flow.subscribers or 1
        if flow.routing == "content":
            copies = len(to_matching(addresses.subscribers, flow.input_format)(body, {}))
        if copies:
            found.append(Made(body, copies))
    return found


@contextmanager
def _database(flow: LiveFlow) -> Iterator[DatabasePlace | None]:
    if flow.node != "database":
        yield None
        return
    if flow.database == "postgresql":
        with prepared_database("postgresql", os.environ.get(_POSTGRESQL, "")) as place:
            yield place
        return
    with (
        tempfile.TemporaryDirectory(prefix="twin-sqlite-") as folder,
        prepared_database("sqlite", folder) as place,
    ):
        yield place


async def _watch(workers: Workers) -> None:
    """A worker that ended by itself ends the run with its reason."""
    while (problem := workers.problem()) is None:
        await asyncio.sleep(_WATCHING_S)
    raise BrokerProblem(problem)
