"""Publications to subscribers: each is made when every subscriber has the one before."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any

from twin.harness.brokers.interface import Consumer, Message, Queue, Session, Topic
from twin.harness.driving import Body, Run, connected, declared, intended, working
from twin.harness.measuring import clock

_KEY, _IDLE = "wanted", "idle"
# programs of subscribers share connections, so that many of them are no matter of sockets
_CONNECTIONS = 4


class _Received:
    """How many copies of each publication are there, by the time it was to be made."""

    def __init__(self, run: Run, copies: int) -> None:
        self._run, self._copies = run, copies
        self._missing: dict[float, int] = {}

    def awaited(self, since: float) -> None:
        self._missing[since] = self._copies
        self._run.sent()

    def take(self, body: bytes) -> None:
        since = intended(body)
        if since is None or since not in self._missing:
            return
        self._missing[since] -= 1
        if not self._missing[since]:
            del self._missing[since]
            self._run.done(since)


async def publishing(run: Run) -> None:
    subscribers, persistent = run.column("subscribers"), run.column("persistent")
    received = _Received(run, subscribers)
    shared = run.column("subscriber_queues") == "shared"
    topic = Topic(f"{run.prefix}-topic", persistent, run.column("routing", "topic"))
    queue = Queue(f"{run.prefix}-all", persistent)
    async with AsyncExitStack() as stack:
        publisher = await stack.enter_async_context(declared(run.broker, [queue if shared else topic]))
        connections = await stack.enter_async_context(connected(run.broker, _CONNECTIONS))
        sessions = [await one.session() for one in connections]
        consumers: list[Consumer] = []
        if shared:
            consumers.append(await sessions[0].consume(queue))
        else:
            consumers += await _subscribers(sessions, topic, _KEY, subscribers)
            consumers += await _subscribers(sessions, topic, _IDLE, run.column("idle_subscribers", 0))
        for one in consumers:
            stack.push_async_callback(one.close)
        copies = (
            [{"correlation": str(number)} for number in range(subscribers)] if shared else [{}]
        )  # what makes one publication
        loops: list[Coroutine[Any, Any, None]] = [_subscriber(one, received) for one in consumers]
        for _ in range(run.column("window", 1)):
            loops.append(_publisher(run, publisher, queue if shared else topic, copies, received))
        async with working(*loops):
            await run.measured()


async def _subscribers(sessions: Sequence[Session], topic: Topic, key: str, count: int) -> list[Consumer]:
    """Idle ones ask for keys that nobody publishes, each for its own."""
    return [
        await sessions[number % len(sessions)].subscribe(topic, key if key == _KEY else f"{key}{number}")
        for number in range(count)
    ]


async def _publisher(
    run: Run, session: Session, to: Queue | Topic, copies: Sequence[dict[str, str]], received: _Received
) -> None:
    body = Body(run.column("message_bytes"))
    while True:
        await run.room(run.column("window", 1))
        now = clock()
        received.awaited(now)
        await session.put([Message(to, body.at(now), _KEY, headers) for headers in copies])


async def _subscriber(consumer: Consumer, received: _Received) -> None:
    while True:
        delivery = await consumer.get()
        await consumer.done([delivery])
        received.take(delivery.body)
