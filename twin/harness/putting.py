"""Producers and consumers: put and get, units of work, windows, read-ahead, shared connections."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from twin.harness.brokers.interface import UNLIMITED, Message, Queue, Session
from twin.harness.driving import DEPTH, Body, Run, connected, declared, ends_unit, intended, working
from twin.harness.measuring import clock

# puts under way of a load by the clock: one that cannot keep up is told by the rate that it missed
_OPEN_LOOP = 5000


async def putting(run: Run) -> None:
    producers, consumers = run.column("producers"), run.column("consumers")
    queues = [
        Queue(f"{run.prefix}-{number}", run.column("persistent")) for number in range(run.column("queues", 1))
    ]
    # left out, every program has a connection of its own
    connections = min(run.column("connections", producers + consumers), producers + consumers)
    async with declared(run.broker, queues), connected(run.broker, connections) as shared:
        sessions = [await shared[number % connections].session() for number in range(producers + consumers)]
        loops: list[Coroutine[Any, Any, None]] = []
        for number in range(consumers):
            loops.append(_consumer(run, sessions[producers + number], queues[number % len(queues)]))
        for number in range(producers):
            loops += _producer(run, sessions[number], queues[number % len(queues)], consumers > 0)
        async with working(*loops):
            await run.measured()


def _producer(run: Run, session: Session, queue: Queue, consumed: bool) -> list[Coroutine[Any, Any, None]]:
    """As many loops as units of work may be unconfirmed."""
    rate, window = run.column("offered_rate_msgs_per_s"), run.column("window")
    if rate is not None:
        return [_by_the_clock(run, session, queue, rate / run.column("producers"), consumed)]
    if window is None:
        return [_without_waiting(run, session, queue, consumed)]
    each = run.column("messages_per_commit", 1)
    return [_closed_loop(run, session, queue, each, consumed) for _ in range(max(window // each, 1))]


async def _closed_loop(run: Run, session: Session, queue: Queue, each: int, consumed: bool) -> None:
    body = Body(run.column("message_bytes"))
    unconfirmed = run.column("producers") * run.column("window")
    while True:
        await run.room(unconfirmed + DEPTH)
        now = clock()
        unit = [Message(queue, body.at(now, last=number == each)) for number in range(1, each + 1)]
        await _put(run, session, unit, now, consumed)


async def _without_waiting(run: Run, session: Session, queue: Queue, consumed: bool) -> None:
    body = Body(run.column("message_bytes"))
    while True:
        await run.room(DEPTH)
        now = clock()
        await session.send(Message(queue, body.at(now)))
        run.sent()
        if not consumed:
            run.done(now)
        # a send that finds room in its buffer gives way to nobody
        await asyncio.sleep(0)


async def _by_the_clock(run: Run, session: Session, queue: Queue, rate: float, consumed: bool) -> None:
    """Open loop: sent when it is time, however the ones before fare."""
    body = Body(run.column("message_bytes"))
    due = clock()
    async with asyncio.TaskGroup() as puts:
        while True:
            due += 1 / rate
            await asyncio.sleep(max(due - clock(), 0))
            await run.room(_OPEN_LOOP)
            puts.create_task(_put(run, session, [Message(queue, body.at(due))], due, consumed))


async def _put(run: Run, session: Session, messages: Sequence[Message], since: float, consumed: bool) -> None:
    run.sent(len(messages))
    await session.put(messages)
    if not consumed:
        for _ in messages:
            run.done(since)


async def _consumer(run: Run, session: Session, queue: Queue) -> None:
    prefetch = run.column("prefetch", UNLIMITED)
    each = min(run.column("messages_per_commit", 1), prefetch)
    consumer = await session.consume(queue, prefetch)
    taken = []
    while True:
        delivery = await consumer.get()
        taken.append(delivery)
        run.done(intended(delivery.body))
        # a unit of work of the producer is one of the consumer: what it holds back beyond that keeps brokers
        # that confirm consumed messages at once from doing so
        if len(taken) >= each or ends_unit(delivery.body):
            await consumer.done(taken)
            taken = []
