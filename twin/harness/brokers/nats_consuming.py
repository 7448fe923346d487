"""Consumers of NATS: subjects that are listened to, streams that are pulled from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from twin.harness.brokers.interface import BrokerProblem, Delivery

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

# a pull request ends by itself after this time and is made again
_PULL_NS = 30 * 10**9
GONE = "the connection to NATS is gone"


class Link(Protocol):
    """What consumers need of their connection."""

    client: Client
    streams: JetStreamContext
    gone: bool
    consumers: set[NatsConsumer]

    async def settled(self) -> None:
        """All that was asked before has reached the server."""


class NatsConsumer:
    def __init__(self, link: Link, prefetch: int) -> None:
        self._link, self._prefetch = link, prefetch
        self._arrived: asyncio.Queue[Delivery | None] = asyncio.Queue()
        # of a stream: where to ask for more, how many were asked for or are held, whose consumer it is
        self._requests, self._inbox, self._promised = "", "", 0
        self._stream, self._durable, self._own = "", "", False
        self._subscription: Any = None

    async def listen(self, subject: str, group: str = "") -> None:
        client = self._link.client
        self._subscription = await client.subscribe(subject, queue=group, cb=self._take)
        self._link.consumers.add(self)
        await self._link.settled()

    async def pull(self, stream: str, durable: str, own: bool = False) -> None:
        client = self._link.client
        self._stream, self._durable, self._own = stream, durable, own
        self._requests = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}"
        self._inbox = client.new_inbox()
        self._subscription = await client.subscribe(self._inbox, cb=self._take_pulled)
        self._link.consumers.add(self)
        await self._ask()
        await self._link.settled()

    async def get(self) -> Delivery:
        delivery = await self._arrived.get()
        if delivery is None:
            self._arrived.put_nowait(None)
            raise BrokerProblem(GONE)
        return delivery

    async def done(self, deliveries: Sequence[Delivery]) -> None:
        if not self._stream:
            return
        async with problems():
            for delivery in deliveries:
                await delivery.tag.ack()
            self._promised -= len(deliveries)
            # half of what it may hold at a time saves requests and keeps messages coming
            if self._promised <= self._prefetch // 2:
                await self._ask()

    async def close(self) -> None:
        self._link.consumers.discard(self)
        if self._link.gone:
            return
        async with problems():
            await self._subscription.unsubscribe()
            if self._own:
                await self._link.streams.delete_consumer(self._stream, self._durable)

    def end(self) -> None:
        self._arrived.put_nowait(None)

    async def _take(self, message: Msg) -> None:
        self._arrived.put_nowait(Delivery(message.data, message.headers or {}, message))

    async def _take_pulled(self, message: Msg) -> None:
        status = (message.headers or {}).get("Status") if not message.reply else None
        if status is None:
            self._arrived.put_nowait(Delivery(message.data, message.headers or {}, message))
            return
        # the request has ended: what it did not bring is asked for again
        self._promised -= int((message.headers or {}).get("Nats-Pending-Messages", 0))
        if not self._link.gone:
            await self._ask()

    async def _ask(self) -> None:
        more = self._prefetch - self._promised
        if more > 0:
            self._promised += more
            request = json.dumps({"batch": more, "expires": _PULL_NS}).encode()
            await self._link.client.publish(self._requests, request, self._inbox)


@asynccontextmanager
async def problems() -> AsyncIterator[None]:
    """Whatever the library raises, as a problem that can be told."""
    import nats

    try:
        yield
    except nats.js.errors.APIError as error:
        raise BrokerProblem(f"NATS refuses: {error.description}") from error
    except (nats.errors.ConnectionClosedError, nats.errors.UnexpectedEOF, OSError) as error:
        raise BrokerProblem(GONE) from error
    except (TimeoutError, nats.errors.Error) as error:
        raise BrokerProblem(f"NATS: {error or 'no answer in time'}") from error
