"""NATS: plain subjects for what may be lost, JetStream file storage for what may not.

A persistent queue is a stream that forgets what was acknowledged, with one durable consumer that all programs
pull from. Acknowledgements and pulls are our own few lines on plain publish and subscribe: the library's
would not notice in time that a connection is gone.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from twin.harness.brokers.interface import (
    UNLIMITED,
    Address,
    BrokerProblem,
    Consumer,
    Delivery,
    Message,
    NotOffered,
    Queue,
    Topic,
)

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

_CONNECTING_S = 5
# longest that a broker may take to acknowledge a unit of work
_ANSWERING_S = 30
# a pull request ends by itself after this time and is made again
_PULL_NS = 30 * 10**9
_GROUP = "workers"
# a message that is not done with is delivered again only when its program is gone for sure
_REDELIVERY_S = 600
# the library's own limit is twice that
_FULL_BYTES = 2**20
_GONE = "the connection to NATS is gone"


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
        self._client: Client
        self._streams: JetStreamContext
        self._acknowledged: dict[str, asyncio.Future[None]] = {}
        self._consumers: set[_Consumer] = set()
        self._numbers = itertools.count()
        self._inbox = ""
        self._gone = False
        self._reading: asyncio.Task[None]

    @classmethod
    async def made(cls, address: str) -> NatsConnection:
        connection = cls()
        client = connection._client = await _connected(address, connection._lost)
        connection._streams = client.jetstream()
        connection._inbox = client.new_inbox()
        # the library forgets `closed_cb` where something was still to be written
        connection._reading = client._reading_task
        connection._reading.add_done_callback(connection._read)
        await client.subscribe(f"{connection._inbox}.*", cb=connection._take_acknowledgement)
        return connection

    async def session(self) -> NatsConnection:
        return self

    async def settled(self) -> None:
        """All that was asked before has reached the server."""
        async with asyncio.timeout(_ANSWERING_S):
            await (await self._echo())

    async def close(self) -> None:
        await self._client.close()

    async def declare(self, *addresses: Address) -> None:
        from nats.js.api import ConsumerConfig, RetentionPolicy, StorageType, StreamConfig
        from nats.js.errors import NotFoundError

        async with _problems():
            for address in addresses:
                if isinstance(address, Topic) and address.routing == "content":
                    raise NotOffered("NATS routes by subject only: let a flow worker route by content")
                if not address.persistent:
                    try:
                        await self._streams.stream_info(address.name)
                    except NotFoundError:
                        continue
                    raise BrokerProblem(f"{address.name} is there already, as a persistent one")
                queue = isinstance(address, Queue)
                await self._streams.add_stream(
                    StreamConfig(
                        name=address.name,
                        subjects=[address.name] if queue else [f"{address.name}.>"],
                        retention=RetentionPolicy.WORK_QUEUE if queue else RetentionPolicy.INTEREST,
                        storage=StorageType.FILE,
                    )
                )
                if queue:
                    await self._streams.add_consumer(
                        address.name,
                        ConsumerConfig(durable_name=_GROUP, ack_wait=_REDELIVERY_S, max_ack_pending=-1),
                    )

    async def remove(self, *addresses: Address) -> None:
        from nats.js.errors import NotFoundError

        async with _problems():
            for address in addresses:
                if address.persistent:
                    try:
                        await self._streams.delete_stream(address.name)
                    except NotFoundError:
                        continue

    async def put(self, messages: Sequence[Message]) -> None:
        async with _problems():
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
        async with _problems():
            await self._publish(message)

    async def consume(self, queue: Queue, prefetch: int = UNLIMITED) -> Consumer:
        async with _problems():
            consumer = _Consumer(self, prefetch)
            if queue.persistent:
                await consumer.pull(queue.name, _GROUP)
            else:
                await consumer.listen(queue.name, _GROUP)
            return consumer

    async def subscribe(self, topic: Topic, key: str, prefetch: int = UNLIMITED) -> Consumer:
        from nats.js.api import ConsumerConfig, DeliverPolicy

        async with _problems():
            consumer = _Consumer(self, prefetch)
            if topic.persistent:
                made = await self._streams.add_consumer(
                    topic.name,
                    ConsumerConfig(
                        durable_name=f"subscriber-{self._client.new_inbox().rpartition('.')[2]}",
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
        await self._client.publish(inbox)
        return acknowledgement

    def _awaited(self) -> tuple[str, asyncio.Future[None]]:
        if self._gone:
            raise BrokerProblem(_GONE)
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
        publishing = self._client.publish(_subject(message), message.body, reply, headers=_headers(message))
        if self._client.pending_data_size + len(message.body) < _FULL_BYTES:
            await publishing
            return
        # the library waits for the socket, also when that is gone
        waiting = asyncio.ensure_future(publishing)
        await asyncio.wait([waiting, self._reading], return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            raise BrokerProblem(_GONE)
        await waiting

    def _read(self, reading: asyncio.Task[None]) -> None:
        if not reading.cancelled():
            reading.exception()
        self._lose()

    async def _lost(self) -> None:
        self._lose()

    def _lose(self) -> None:
        self._gone = True
        for acknowledgement in self._acknowledged.values():
            if not acknowledgement.done():
                acknowledgement.set_exception(BrokerProblem(_GONE))
                # whoever waited may be gone as well
                acknowledgement.exception()
        self._acknowledged.clear()
        for consumer in self._consumers:
            consumer.end()


class _Consumer:
    def __init__(self, connection: NatsConnection, prefetch: int) -> None:
        self._connection, self._prefetch = connection, prefetch
        self._arrived: asyncio.Queue[Delivery | None] = asyncio.Queue()
        # of a stream: where to ask for more, how many were asked for or are held, whose consumer it is
        self._requests, self._inbox, self._promised = "", "", 0
        self._stream, self._durable, self._own = "", "", False
        self._subscription: Any = None

    async def listen(self, subject: str, group: str = "") -> None:
        client = self._connection._client
        self._subscription = await client.subscribe(subject, queue=group, cb=self._take)
        self._connection._consumers.add(self)
        await self._connection.settled()

    async def pull(self, stream: str, durable: str, own: bool = False) -> None:
        client = self._connection._client
        self._stream, self._durable, self._own = stream, durable, own
        self._requests = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}"
        self._inbox = client.new_inbox()
        self._subscription = await client.subscribe(self._inbox, cb=self._take_pulled)
        self._connection._consumers.add(self)
        await self._ask()
        await self._connection.settled()

    async def get(self) -> Delivery:
        delivery = await self._arrived.get()
        if delivery is None:
            self._arrived.put_nowait(None)
            raise BrokerProblem(_GONE)
        return delivery

    async def done(self, deliveries: Sequence[Delivery]) -> None:
        if not self._stream:
            return
        async with _problems():
            for delivery in deliveries:
                await delivery.tag.ack()
            self._promised -= len(deliveries)
            # half of what it may hold at a time saves requests and keeps messages coming
            if self._promised <= self._prefetch // 2:
                await self._ask()

    async def close(self) -> None:
        self._connection._consumers.discard(self)
        if self._connection._gone:
            return
        async with _problems():
            await self._subscription.unsubscribe()
            if self._own:
                await self._connection._streams.delete_consumer(self._stream, self._durable)

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
        if not self._connection._gone:
            await self._ask()

    async def _ask(self) -> None:
        more = self._prefetch - self._promised
        if more > 0:
            self._promised += more
            request = json.dumps({"batch": more, "expires": _PULL_NS}).encode()
            await self._connection._client.publish(self._requests, request, self._inbox)


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


@asynccontextmanager
async def _problems() -> AsyncIterator[None]:
    """Whatever the library raises, as a problem that can be told."""
    import nats

    try:
        yield
    except nats.js.errors.APIError as error:
        raise BrokerProblem(f"NATS refuses: {error.description}") from error
    except (nats.errors.ConnectionClosedError, nats.errors.UnexpectedEOF, OSError) as error:
        raise BrokerProblem(_GONE) from error
    except (TimeoutError, nats.errors.Error) as error:
        raise BrokerProblem(f"NATS: {error or 'no answer in time'}") from error
