"""A unit of work: messages are taken, worked on and put; only when what was put is safe are those that were
taken done with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twin.harness.brokers.interface import Consumer, Delivery, Message, Session
from twin.harness.flow.nodes import Node
from twin.harness.flow.outputs import Output


@dataclass(frozen=True)
class Outcome:
    puts: Sequence[Message]
    # in the order in which they came
    finished: Sequence[Delivery]


Work = Callable[[Sequence[Delivery]], Outcome]


def one_by_one(node: Node, output: Output, commit: Callable[[], None] | None = None) -> Work:
    """`commit`: of a database, before anything is put. There is no unit of work over both: if a broker fails
    in between, the message comes again and the same rows are written again."""

    def work(deliveries: Sequence[Delivery]) -> Outcome:
        puts: list[Message] = []
        for delivery in deliveries:
            body = node(delivery.body)
            if body is not None:
                puts += output(body, delivery.headers)
        if commit is not None:
            commit()
        return Outcome(puts, deliveries)

    return work


async def keep_working(consumer: Consumer, session: Session, work: Work, messages_per_commit: int) -> None:
    """Until it is cancelled."""
    waiting = _Waiting(consumer)
    try:
        while True:
            outcome = work(await waiting.taken(messages_per_commit))
            if outcome.puts:
                await session.put(outcome.puts)
            if outcome.finished:
                await consumer.done(outcome.finished)
    finally:
        waiting.cancel()


class _Waiting:
    """For messages of a consumer. What is asked for and not there yet is waited for in the next unit of work:
    to give it up could lose a message that is just coming."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._asked: asyncio.Task[Delivery] | None = None

    async def taken(self, most: int) -> list[Delivery]:
        """At least one, and then those that are there already."""
        if most == 1:
            return [await self._consumer.get()]
        deliveries = [await self._next()]
        while len(deliveries) < most and await self._is_there():
            deliveries.append(await self._next())
        return deliveries

    def cancel(self) -> None:
        if self._asked is not None:
            self._asked.cancel()

    async def _next(self) -> Delivery:
        asked, self._asked = self._ask(), None
        return await asked

    async def _is_there(self) -> bool:
        self._asked = self._ask()
        # a consumer that has a message needs one turn of the loop to hand it over
        await asyncio.sleep(0)
        return self._asked.done()

    def _ask(self) -> asyncio.Task[Delivery]:
        return self._asked or asyncio.ensure_future(self._consumer.get())
