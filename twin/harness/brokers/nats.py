"""NATS: plain subjects for what may be lost, JetStream file storage for what may not.

A persistent queue is a stream that forgets what was acknowledged, with one durable consumer that all programs
pull from. Acknowledgements and pulls are our own few lines on plain publish and subscribe: the library's
would not notice in time that a connection is gone.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twin.harness.brokers.interface import (
    UNLIMITED,
    Address,
    BrokerProblem,
    Consumer,
    Message,
    NotOffered,
    Queue,
    Topic,
)
from twin.harness.brokers.nats_consuming import GONE, NatsConsumer, problems

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

_CONNECTING_S = 5
# longest that a broker may take to acknowledge a unit of work
_ANSWERING_S = 30
_GROUP = "workers"
# a message that is not done with is delivered again only when its program is gone for sure
_REDELIVERY_S = 600
# the library's own limit is twice that
_FULL_BYTES = 2**20


class Nats:
    name = "nats"
    product = "NATS"

    def __init__(self, address: str, version: str, process_ids: Sequence[int] = ()) -> None:
        self.address, self.version, self.process_ids = address, version, tuple(process_ids)

    @classmethod
    async def reached(cls, address: str, process_ids: Sequence[int] = ()) -> Nats:
        client = await _connected(address)
        version = client.connected_server_version
        await client.close()
        return cls(address, f"{version.major}.{version.minor}.{version.patch}", process_ids)

    async def connect(self) -> NatsConnection:
        return await NatsConnection.made(self.address)


class NatsConnection:
    """The connection is the smallest thing there is: all of its sessions are itself."""

    def __init__(self) -> None:
        self.client: Client
        self.streams: JetStreamContext
        self.gone = False
        self.consumers: set[NatsConsumer] = set()
        self._acknowledged: dict[str, asyncio.Future[None]] = {}
        self._numbers = itertools.count()
        self._inbox = ""
        self._reading: asyncio.Task[None]

    @classmethod
    async def made(cls, address: str) -> NatsConnection:
        connection = cls()
        client = connection.client = await _connected(address, connection._lost)
        connection.streams = client.jetstream()
        connection._inbox = client.new_inbox()
        # the library forgets `closed_cb` where something was still to be written
        connection._reading = client._reading_task
        connection._reading.add_done_callback(connection._read)
        await client.subscribe(f"{connection._inbox}.*", cb=connection._take_acknowledgement)
        return connection

    async def session(self) -> NatsConnection:
        return self

    async def settled(self) -> None:
        async with asyncio.timeout(_ANSWERING_S):
            await (await self._echo())

    async def close(self) -> None:
        await self.client.close()

    async def declare(self, *addresses: Address) -> None:
        from nats.js.api import ConsumerConfig, RetentionPolicy, StorageType, StreamConfig
        from nats.js.errors import NotFoundError

        async with problems():
            for address in addresses:
                if isinstance(address, Topic) and address.routing == "content":
                    raise NotOffered("NATS routes by subject only: let a flow worker route by content")
                if not address.persistent:
                    try:
                        await self.streams.stream_info(address.name)
                    except NotFoundError:
                        continue
                    raise BrokerProblem(f"{address.name} is there already, as a persistent one")
                queue = isinstance(address, Queue)
                await self.streams.add_stream(
                    StreamConfig(
                        name=address.name,
                        subjects=[address.name] if queue else [f"{address.name}.>"],
                        retention=RetentionPolicy.WORK_QUEUE if queue else RetentionPolicy.INTEREST,
                        storage=StorageType.FILE,
                    )
                )
                if queue:
                    await self.streams.add_consumer(
                        address.name,
                        ConsumerConfig(durable_name=_GROUP, ack_wait=_REDELIVERY_S, max_ack_pending=-1),
                    )

    async def remove(self, *addresses: Address) -> None:
        from nats.js.errors import NotFoundError

        async with problems():
            for address in addresses:
                if address.persistent:
                    try:
                        await self.streams.delete_stream(address.name)
                    except NotFoundError:
                        continue

    async def put(self, messages: Sequence[Message]) -> None:
        async with problems():
            waiting = []
            for one in messages:
                if one.to.persistent:
                    waiting.append(await self._acknowledged_publish(one))
                else:
                    await self._publish(one)
            if len(waiting) < len(messages):
                # what comes back to us has come after all that we sent
                waiting.append(await self._echo())
            async with asyncio.timeout(_ANSWERING_S):
                for acknowledgement in waiting:
                    await acknowledgement

    async def send(self, message: Message) -> None:
        async with problems():
            await self._publish(message)

    async def consume(self, queue: Queue, prefetch: int = UNLIMITED) -> Consumer:
        async with problems():
            consumer = NatsConsumer(self, prefetch)
            if queue.persistent:
                await consumer.pull(queue.name, _GROUP)
            else:
                await consumer.listen(queue.name, _GROUP)
            return consumer

    async def subscribe(self, topic: Topic, key: str, prefetch: int = UNLIMITED) -> Consumer:
        from nats.js.api import ConsumerConfig, DeliverPolicy

        async with problems():
            consumer = NatsConsumer(self, prefetch)
            if topic.persistent:
                made = await self.streams.add_consumer(
                    topic.name,
                    ConsumerConfig(
                        durable_name=f"subscriber-{self.client.new_inbox().rpartition('.')[2]}",
                        filter_subject=f"{topic.name}.{key}",
                        deliver_policy=DeliverPolicy.NEW,
                        ack_wait=_REDELIVERY_S,
                        max_ack_pending=-1,
                    ),
                )
                await consumer.pull(topic.name, made.name, own=True)
            else:
                await consumer.listen(f"{topic.name}.{key}")
            return consumer

    async def _acknowledged_publish(self, message: Message) -> asyncio.Future[None]:
        inbox, acknowledgement = self._awaited()
        await self._publish(message, inbox)
        return acknowledgement

    async def _echo(self) -> asyncio.Future[None]:
        """A round trip to the server, as a ping is; but the library does not survive a ping that nobody
        waits for any more."""
        inbox, acknowledgement = self._awaited()
        await self.client.publish(inbox)
        return acknowledgement

    def _awaited(self) -> tuple[str, asyncio.Future[None]]:
        if self.gone:
            raise BrokerProblem(GONE)
        number = str(next(self._numbers))
        acknowledgement = self._acknowledged[number] = asyncio.get_running_loop().create_future()
        return f"{self._inbox}.{number}", acknowledgement

    async def _take_acknowledgement(self, message: Msg) -> None:
        acknowledgement = self._acknowledged.pop(message.subject.rpartition(".")[2], None)
        if acknowledgement is None or acknowledgement.done():
            return
        if b'"error"' in message.data or message.headers is not None:
            said = json.loads(message.data)["error"]["description"] if message.data else "nobody stores it"
            acknowledgement.set_exception(BrokerProblem(f"NATS did not take a message: {said}"))
        else:
            acknowledgement.set_result(None)

    async def _publish(self, message: Message, reply: str = "") -> None:
        publishing = self.client.publish(_subject(message), message.body, reply, headers=_headers(message))
        if self.client.pending_data_size + len(message.body) < _FULL_BYTES:
            await publishing
            return
        # the library waits for the socket, also when that is gone
        waiting = asyncio.ensure_future(publishing)
        await asyncio.wait([waiting, self._reading], return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            raise BrokerProblem(GONE)
        await waiting

    def _read(self, reading: asyncio.Task[None]) -> None:
        if not reading.cancelled():
            reading.exception()
        self._lose()

    async def _lost(self) -> None:
        self._lose()

    def _lose(self) -> None:
        self.gone = True
        for acknowledgement in self._acknowledged.values():
            if not acknowledgement.done():
                acknowledgement.set_exception(BrokerProblem(GONE))
                # whoever waited may be gone as well
                acknowledgement.exception()
        self._acknowledged.clear()
        for consumer in self.consumers:
            consumer.end()


def _subject(message: Message) -> str:
    return f"{message.to.name}.{message.key}" if isinstance(message.to, Topic) else message.to.name


def _headers(message: Message) -> dict[str, str] | None:
    return dict(message.headers) or None


async def _connected(address: str, lost: Any = None) -> Client:
    import nats

    said: list[Exception] = []

    async def heard(error: Exception) -> None:
        said.append(error)

    try:
        # a reconnection behind our back would hide what is to be measured
        async with asyncio.timeout(_CONNECTING_S):
            return await nats.connect(
                address, allow_reconnect=False, max_reconnect_attempts=1, reconnect_time_wait=0,
                connect_timeout=_CONNECTING_S, error_cb=heard, closed_cb=lost,
            )  # fmt: skip
    except (TimeoutError, OSError, nats.errors.Error) as error:
        place = address.rpartition("@")[2].removeprefix("nats://")
        reasons = " ".join(str(one) for one in (*said, error))
        if "uthorization" in reasons:
            raise BrokerProblem(f"NATS at {place} does not accept this user and password") from error
        raise BrokerProblem(f"NATS does not answer at {place}: start it or give another address") from error
