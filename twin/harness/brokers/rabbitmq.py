"""RabbitMQ by AMQP 0-9-1: a session is a channel.

A topic is an exchange, and each of its subscribers has a queue of its own. What the broker refuses ends the
channel it was asked on, so the session says that it is over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import cast
from urllib.parse import urlsplit
from uuid import uuid4

import aiormq
import pamqp.frame
from aiormq.abc import DeliveredMessage
from aiormq.channel import Channel
from aiormq.exceptions import ChannelPreconditionFailed, InvalidFrameError, ProbableAuthenticationError
from pamqp.commands import Basic

from twin.harness.brokers.arrivals import Arrivals
from twin.harness.brokers.interface import (
    UNLIMITED,
    Address,
    BrokerProblem,
    Consumer,
    Delivery,
    Message,
    Queue,
    Topic,
)
from twin.harness.brokers.processes import listening
from twin.harness.brokers.rabbitmq_problems import GONE, LIBRARY, OVER, Told, problem_of, said
from twin.harness.brokers.rabbitmq_publishing import KEY_HEADER, Publisher
from twin.harness.brokers.rabbitmq_writing import Writer

# problems are told by us; the library would tell them again, with tracebacks
logging.getLogger("aiormq").setLevel(logging.CRITICAL)

_PORTS = {"amqp": 5672, "amqps": 5671}
_CONNECTING_S = 5
# a broker short of memory reads nothing more
_CLOSING_S = 5
# AMQP has 16 bits for it
_MOST_PREFETCHED = 65535
# a subscriber whose program was killed leaves its durable queue behind: the broker removes it after this time
_ABANDONED_MS = 10 * 60 * 1000


class RabbitMQ:
    name = "rabbitmq"

    def __init__(self, address: str, product: str, version: str) -> None:
        self.address, self.product, self.version = address, product, version

    @classmethod
    async def reached(cls, address: str = "amqp://guest:guest@127.0.0.1:5672/") -> RabbitMQ:
        connection = await _connected(address)
        told = connection.server_properties
        await connection.close()
        return cls(address, str(told.get("product", "RabbitMQ")), str(told.get("version", "unknown")))

    @cached_property
    def process_ids(self) -> Sequence[int]:
        host, port = _place(self.address)
        return listening(host, port, "beam")

    async def connect(self) -> RabbitConnection:
        return RabbitConnection(await _connected(self.address))


class RabbitConnection:
    def __init__(self, connection: aiormq.Connection) -> None:
        self._connection = connection
        self._sessions: list[RabbitSession] = []

    async def session(self) -> RabbitSession:
        try:
            channel = await self._connection.channel(publisher_confirms=False)
        except LIBRARY as error:
            raise BrokerProblem(GONE if self._connection.is_closed else f"RabbitMQ: {error}") from error
        session = RabbitSession(cast(Channel, channel))
        self._sessions.append(session)
        return session

    async def close(self) -> None:
        for session in self._sessions:
            # what was sent is still on its way, unless that is no more
            with suppress(BrokerProblem):
                await session.sent()
        await self._connection.close()


class RabbitSession:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._writer = Writer(channel)
        self._publisher = Publisher(channel, self._writer)
        self._told = Told(channel)
        # a prefetch holds for consumers made after it
        self._turn = asyncio.Lock()
        self._consumers: dict[str, _Consumer] = {}
        # deliveries that nobody is done with, oldest first
        self._held: dict[int, _Consumer] = {}
        channel.closing.add_done_callback(lambda _: self._end())
        channel.on_consumer_cancel_callbacks.add(self._cancelled)

    async def declare(self, *addresses: Address) -> None:
        with self._told:
            for address in addresses:
                try:
                    if isinstance(address, Queue):
                        await self._channel.queue_declare(address.name, durable=address.persistent)
                    else:
                        await self._channel.exchange_declare(
                            address.name,
                            exchange_type="headers" if address.routing == "content" else "topic",
                            durable=address.persistent,
                        )
                except ChannelPreconditionFailed as error:
                    raise BrokerProblem(
                        f"{address.name} is there already with other options ({said(error)}): remove it or "
                        f"take another name. {OVER}"
                    ) from error

    async def remove(self, *addresses: Address) -> None:
        with self._told:
            for address in addresses:
                if isinstance(address, Queue):
                    await self._channel.queue_delete(address.name)
                else:
                    await self._channel.exchange_delete(address.name)

    async def put(self, messages: Sequence[Message]) -> None:
        with self._told:
            await self._publisher.put(messages)

    async def send(self, message: Message) -> None:
        with self._told:
            await self._publisher.send(message)

    async def sent(self) -> None:
        with self._told:
            async with asyncio.timeout(_CLOSING_S):
                await self._writer.is_empty()

    async def consume(self, queue: Queue, prefetch: int = UNLIMITED) -> Consumer:
        with self._told:
            return await self._consumer(queue.name, prefetch)

    async def subscribe(self, topic: Topic, key: str, prefetch: int = UNLIMITED) -> Consumer:
        channel = self._channel
        with self._told:
            queue = f"{topic.name}.{uuid4().hex}"
            await channel.queue_declare(
                queue,
                durable=topic.persistent,
                exclusive=not topic.persistent,
                arguments={"x-expires": _ABANDONED_MS} if topic.persistent else None,
            )
            if topic.routing == "content":
                await channel.queue_bind(queue, topic.name, arguments={"x-match": "all", KEY_HEADER: key})
            else:
                await channel.queue_bind(queue, topic.name, key)
            return await self._consumer(queue, prefetch, own=True)

    def write(self, frame: Basic.Ack | Basic.Reject) -> None:
        self._writer.write(pamqp.frame.marshal(frame, self._channel.number))

    async def _consumer(self, queue: str, prefetch: int, own: bool = False) -> _Consumer:
        channel = self._channel
        consumer = _Consumer(self, queue, own)
        async with self._turn:
            await channel.basic_qos(prefetch_count=min(prefetch, _MOST_PREFETCHED))
            made = await channel.basic_consume(queue, consumer.take)
        consumer.name = str(made.consumer_tag)
        self._consumers[consumer.name] = consumer
        return consumer

    def _end(self) -> None:
        for consumer in self._consumers.values():
            consumer.arrivals.end(problem_of(self._channel))

    def _cancelled(self, frame: Basic.Cancel) -> None:
        consumer = self._consumers.pop(str(frame.consumer_tag), None)
        if consumer is not None:
            consumer.arrivals.end(BrokerProblem(f"RabbitMQ has the queue {consumer.queue} no more"))


class _Consumer:
    def __init__(self, session: RabbitSession, queue: str, own: bool) -> None:
        self._session, self.queue, self._own = session, queue, own
        self.arrivals = Arrivals()
        self.name = ""

    async def get(self) -> Delivery:
        return await self.arrivals.get()

    async def done(self, deliveries: Sequence[Delivery]) -> None:
        held = self._session._held
        tags = [delivery.tag for delivery in deliveries]
        if not tags:
            return
        # one word for all is a word for everything older on this channel, whoever holds it
        oldest = list(islice(held, len(tags))) == tags
        for tag in tags:
            held.pop(tag, None)
        with self._session._told:
            for tag in tags[-1:] if oldest else tags:
                self._session.write(Basic.Ack(tag, multiple=oldest))

    async def close(self) -> None:
        session, channel = self._session, self._session._channel
        if session._consumers.pop(self.name, None) is None or channel.is_closed:
            return
        with session._told:
            await channel.basic_cancel(self.name)
            if self._own:
                await channel.queue_delete(self.queue)
            mine = [tag for tag, holder in session._held.items() if holder is self]
            for tag in mine:
                del session._held[tag]
                if not self._own:
                    # back to the queue, for others
                    session.write(Basic.Reject(tag, requeue=True))

    async def take(self, message: DeliveredMessage) -> None:
        tag, headers = message.delivery_tag, message.header.properties.headers or {}
        headers.pop(KEY_HEADER, None)
        self._session._held[cast(int, tag)] = self
        self.arrivals.add(Delivery(message.body, cast(dict[str, str], headers), tag))


def _place(address: str) -> tuple[str, int]:
    try:
        parts = urlsplit(address)
        if parts.hostname and parts.scheme in _PORTS:
            return parts.hostname, parts.port or _PORTS[parts.scheme]
    except ValueError:
        pass
    # as it stands it may show a password
    raise BrokerProblem("the address of a RabbitMQ looks like amqp://user:password@host:5672/")


async def _connected(address: str) -> aiormq.Connection:
    host, port = _place(address)
    try:
        async with asyncio.timeout(_CONNECTING_S):
            return await aiormq.connect(address)
    except ProbableAuthenticationError as error:
        raise BrokerProblem(f"RabbitMQ at {host}:{port} does not accept this user and password") from error
    except (OSError, TimeoutError) as error:
        raise BrokerProblem(
            f"RabbitMQ does not answer at {host}:{port}: start it or give another address"
        ) from error
    except InvalidFrameError as error:
        # the library does not keep what the broker says at this point
        raise BrokerProblem(
            f"RabbitMQ at {host}:{port} lets this user into no such virtual host: see the end of the address"
        ) from error
    except LIBRARY as error:
        raise BrokerProblem(f"RabbitMQ at {host}:{port} refuses: {error}") from error
