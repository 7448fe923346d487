"""Deliveries that nobody has asked for yet, and at their end the reason why there are no more."""

from __future__ import annotations

import asyncio

from twin.harness.brokers.interface import BrokerProblem, Delivery


class Arrivals:
    def __init__(self) -> None:
        self._queue: asyncio.Queue[Delivery | BrokerProblem] = asyncio.Queue()

    def add(self, delivery: Delivery) -> None:
        self._queue.put_nowait(delivery)

    def end(self, problem: BrokerProblem) -> None:
        self._queue.put_nowait(problem)

    async def get(self) -> Delivery:
        first = await self._queue.get()
        if isinstance(first, BrokerProblem):
            # for whoever asks next
            self._queue.put_nowait(first)
            raise BrokerProblem(str(first))
        return first
