"""A process of flow workers: an execution group for one input queue, its instances as threads.

`python -m twin.harness.flow.worker QUEUE GROUP` reads a plan from the first line of its input, says `ready`,
and works until it is terminated or its input ends, as it does when whoever started it is gone. If something
goes wrong, that is its last word.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from contextlib import AsyncExitStack, suppress
from queue import SimpleQueue

from twin.harness.brokers.interface import BrokerProblem, Connection
from twin.harness.brokers.registry import Place
from twin.harness.flow.formats import BadMessage
from twin.harness.flow.plan import Plan
from twin.harness.flow.stages import Seat, opened_stages
from twin.harness.flow.units import keep_working

READY = "ready"
_END = ""
# for instances to leave their broker
_LEAVING_S = 2.0

# READY of an instance, _END when we are asked to, or what went wrong
News = SimpleQueue[str]


class Instance(threading.Thread):
    """Nothing is shared with others: a loop, connections and a database connection of its own."""

    def __init__(self, plan: Plan, seat: Seat, news: News) -> None:
        super().__init__(daemon=True)
        self._plan, self._seat, self._news = plan, seat, news
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._work())
        except asyncio.CancelledError:
            return
        except ExceptionGroup as several:
            self._news.put(_told(several.exceptions[0]))
        except Exception as error:
            self._news.put(_told(error))

    def end(self) -> None:
        if self._running is not None:
            loop, task = self._running
            # one that has ended by itself has no loop any more
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(task.cancel)

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running = asyncio.get_running_loop(), task
        flow, places = self._plan.flow, self._plan.places
        async with AsyncExitStack() as held:
            stages = held.enter_context(opened_stages(self._plan, self._seat))
            source, *others = [await _connection(place, held) for place in places[: flow.brokers]]
            target = others[0] if others else source
            to_do = []
            for stage in stages:
                session = await source.session()
                putting = session if target is source else await target.session()
                consumer = await session.consume(stage.source, stage.prefetch)
                to_do.append((consumer, putting, stage.work, flow.messages_per_commit))
            async with asyncio.TaskGroup() as group:
                for one in to_do:
                    group.create_task(keep_working(*one))
                self._news.put(READY)


async def _connection(place: Place, held: AsyncExitStack) -> Connection:
    connection = await (await place.reached()).connect()
    held.push_async_callback(_close, connection)
    return connection


async def _close(connection: Connection) -> None:
    # whatever there is to tell about a broker that is gone has been told
    with suppress(BrokerProblem):
        await connection.close()


def _told(error: Exception) -> str:
    text = str(error) if isinstance(error, BrokerProblem | BadMessage) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def work(plan: Plan, queue: int, group: int, news: News) -> str:
    """Until something else than READY is heard, which is returned."""
    instances = [Instance(plan, Seat(queue, group, at), news) for at in range(plan.flow.instances)]
    for one in instances:
        one.start()
    for _ in instances:
        word = news.get()
        if word != READY:
            break
    else:
        print(READY, flush=True)
        word = news.get()
    for one in instances:
        one.end()
    until = time.monotonic() + _LEAVING_S
    for one in instances:
        one.join(max(0.0, until - time.monotonic()))
    return word


def main() -> int:
    news: News = SimpleQueue()
    signal.signal(signal.SIGTERM, lambda *_: news.put(_END))
    queue, group = map(int, sys.argv[1:])
    plan = Plan.of_text(sys.stdin.readline())
    threading.Thread(target=_end_with_input, args=[news], daemon=True).start()
    problem = work(plan, queue, group, news)
    if problem:
        print(problem, flush=True)
    return 1 if problem else 0


def _end_with_input(news: News) -> None:
    # not through sys.stdin: a thread that waits in there cannot be left when the process ends
    while os.read(0, 1024):
        pass
    news.put(_END)


if __name__ == "__main__":
    sys.exit(main())
