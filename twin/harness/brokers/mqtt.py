"""MQTT 5, as Mosquitto speaks it: for what may be lost.

A queue is a shared subscription and a topic a plain one, each with a socket of its own: of one client, two
subscriptions to the same are one. Nothing is kept for who is not there yet, so consumers come first, and who
is too slow loses what exceeds the broker's `max_queued_messages`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property

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
from twin.harness.brokers.mqtt_client import MqttClient
from twin.harness.brokers.processes import listening
from twin.harness.brokers.unit_of_work import UnitOfWork

# it is there at once, or the broker was told not to publish such things
_VERSION_S = 1.0
# longest that a broker may take to acknowledge a unit of work
_ANSWERING_S = 60
_GROUP = "twin"


class Mqtt:
    name = "mqtt"

    def __init__(self, host: str, port: int, username: str | None, password: str | None) -> None:
        self.host, self.port = host, port
        self.product, self.version = "Mosquitto", "unknown"
        self._credentials = (username, password)

    @classmethod
    async def reached(
        cls, host: str = "127.0.0.1", port: int = 1883, username: str | None = None,
        password: str | None = None,
    ) -> Mqtt:  # fmt: skip
        broker = cls(host, port, username, password)
        client = await broker.client()
        with suppress(TimeoutError, BrokerProblem):
            await client.listen("$SYS/broker/version")
            async with asyncio.timeout(_VERSION_S):
                told = (await client.arrivals.get()).body.decode(errors="replace")
            # such as "mosquitto version 2.0.11"
            product, _, version = told.rpartition(" version ")
            broker.product, broker.version = product.capitalize() or broker.product, version
        await client.close()
        return broker

    @cached_property
    def process_ids(self) -> Sequence[int]:
        return listening(self.host, self.port, "mosquitto")

    async def connect(self) -> MqttConnection:
        return MqttConnection(self, await self.client())

    async def client(self, prefetch: int = UNLIMITED) -> MqttClient:
        return await MqttClient.connected(self.host, self.port, *self._credentials, prefetch)


class MqttConnection:
    """Its socket is for what goes out. All of its sessions are itself."""

    def __init__(self, broker: Mqtt, client: MqttClient) -> None:
        self._broker, self._client = broker, client
        self._consumers: set[_Consumer] = set()

    async def session(self) -> MqttConnection:
        return self

    async def close(self) -> None:
        for consumer in list(self._consumers):
            await consumer.close()
        await self._client.close()

    async def declare(self, *addresses: Address) -> None:
        for address in addresses:
            _check(address)

    async def remove(self, *addresses: Address) -> None:
        """There are but subscriptions, and they end with their consumers."""

    async def put(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        unit = UnitOfWork(len(messages), asyncio.get_running_loop().create_future())
        try:
            async with asyncio.timeout(_ANSWERING_S):
                for one in messages:
                    _check(one.to)
                    await self._client.put(_topic(one.to, one.key), one.body, one.headers, unit)
                await unit.finished
        except TimeoutError as error:
            raise BrokerProblem(f"the MQTT broker has not acknowledged within {_ANSWERING_S} s") from error

    async def send(self, message: Message) -> None:
        _check(message.to)
        await self._client.send(_topic(message.to, message.key), message.body, message.headers)

    async def consume(self, queue: Queue, prefetch: int = UNLIMITED) -> Consumer:
        _check(queue)
        return await self._listening(f"$share/{_GROUP}/{queue.name}", prefetch)

    async def subscribe(self, topic: Topic, key: str, prefetch: int = UNLIMITED) -> Consumer:
        _check(topic)
        return await self._listening(_topic(topic, key), prefetch)

    async def _listening(self, subscription: str, prefetch: int) -> Consumer:
        client = await self._broker.client(prefetch)
        try:
            await client.listen(subscription)
        except BrokerProblem:
            await client.close()
            raise
        consumer = _Consumer(client, self._consumers)
        self._consumers.add(consumer)
        return consumer


class _Consumer:
    """Its prefetch is what MQTT calls the receive maximum. It holds for what was put; what was sent comes as
    fast as the socket takes it."""

    def __init__(self, client: MqttClient, consumers: set[_Consumer]) -> None:
        self._client, self._consumers = client, consumers

    async def get(self) -> Delivery:
        return await self._client.arrivals.get()

    async def done(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            if delivery.tag is not None:
                self._client.acknowledge(delivery.tag)

    async def close(self) -> None:
        self._consumers.discard(self)
        await self._client.close()


def _topic(address: Address, key: str) -> str:
    return f"{address.name}/{key}" if isinstance(address, Topic) else address.name


def _check(address: Address) -> None:
    if address.persistent:
        raise NotOffered(
            f"{address.name}: Mosquitto does not force each message to disk: nothing is persistent"
        )
    if isinstance(address, Topic) and address.routing == "content":
        raise NotOffered(f"{address.name}: MQTT routes by topic only: let a flow worker route by content")
