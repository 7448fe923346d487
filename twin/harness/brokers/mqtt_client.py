"""A socket to an MQTT broker.

Publishing and receiving are our own few lines on the callbacks: the library's own ways make tasks of every
message, and know neither what the broker says to a message nor how many it takes at a time.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import aiomqtt
import paho.mqtt.client as paho
from aiomqtt.types import PahoSocket
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from twin.harness.brokers.arrivals import Arrivals
from twin.harness.brokers.interface import BrokerProblem, Delivery
from twin.harness.brokers.unit_of_work import UnitOfWork

_CONNECTING_S = 5
# what may wait for the socket before who sends has to wait as well
_BUFFER_BYTES = 65536
# MQTT has 16 bits for it; a broker that says nothing takes as many
_MOST_UNACKNOWLEDGED = 65535
# then others have their turn
_PACKETS_AT_ONCE = 100
# The broker holds small packets back until it hears that earlier ones have come (Nagle). Linux says so up to
# 40 ms later, unless it is told to be quick after every reading.
_QUICKLY: int | None = getattr(socket, "TCP_QUICKACK", None)
_GONE = "the connection to the MQTT broker is gone"
# wrong user or password, in MQTT 5 and before
_FORBIDDEN = (4, 5, 134, 135)


class MqttClient(aiomqtt.Client):
    def __init__(
        self, host: str, port: int, username: str | None, password: str | None, prefetch: int
    ) -> None:
        properties = _properties(PacketTypes.CONNECT, ReceiveMaximum=min(prefetch, _MOST_UNACKNOWLEDGED))
        super().__init__(
            host, port, username=username, password=password, protocol=aiomqtt.ProtocolVersion.V5,
            # we keep to the broker's own limit
            max_inflight_messages=0, properties=properties, timeout=_CONNECTING_S,
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        )  # fmt: skip
        self._client.manual_ack_set(True)
        self.arrivals = Arrivals()
        self._thread = threading.get_ident()
        self._room = asyncio.Semaphore(_MOST_UNACKNOWLEDGED)
        self._unacknowledged: dict[int, UnitOfWork] = {}
        self._unwritten: dict[int, asyncio.Future[None]] = {}
        self._waiting_bytes = 0
        self._received = 0
        self._gone = False

    @classmethod
    async def connected(
        cls, host: str, port: int, username: str | None, password: str | None, prefetch: int
    ) -> MqttClient:
        client = cls(host, port, username, password, prefetch)
        try:
            await client.__aenter__()
        except aiomqtt.MqttCodeError as error:
            code = getattr(error.rc, "value", error.rc)
            refused = "does not accept this user and password" if code in _FORBIDDEN else f"refuses: {error}"
            raise BrokerProblem(f"the MQTT broker at {host}:{port} {refused}") from error
        except (aiomqtt.MqttError, OSError, ValueError) as error:
            # something may listen there that does not speak MQTT
            client._client.disconnect()
            raise BrokerProblem(
                f"no MQTT broker answers at {host}:{port}: start it or give another address"
            ) from error
        client._disconnected.add_done_callback(client._lost)
        return client

    async def listen(self, subscription: str) -> None:
        try:
            answers = await self.subscribe(subscription, qos=1)
        except (aiomqtt.MqttError, ValueError) as error:
            raise BrokerProblem(_GONE if self._gone else f"MQTT: {subscription}: {error}") from error
        for answer in answers:
            if isinstance(answer, ReasonCode) and answer.is_failure:
                raise BrokerProblem(f"the MQTT broker refuses a subscription to {subscription}: {answer}")

    async def put(self, topic: str, body: bytes, headers: Mapping[str, str], unit: UnitOfWork) -> None:
        await self._room.acquire()
        try:
            self._unacknowledged[self._hand_over(topic, body, headers, qos=1)] = unit
        except BrokerProblem:
            self._room.release()
            raise

    async def send(self, topic: str, body: bytes, headers: Mapping[str, str]) -> None:
        number = self._hand_over(topic, body, headers, qos=0)
        self._waiting_bytes += len(body)
        if self._waiting_bytes > _BUFFER_BYTES:
            self._waiting_bytes = 0
            self._unwritten[number] = written = self._loop.create_future()
            await written

    def acknowledge(self, number: int) -> None:
        if self._gone:
            raise BrokerProblem(_GONE)
        self._client.ack(number, 1)

    async def close(self) -> None:
        if not self._gone:
            with suppress(aiomqtt.MqttError):
                await self.__aexit__(None, None, None)

    def _hand_over(self, topic: str, body: bytes, headers: Mapping[str, str], qos: int) -> int:
        if self._gone:
            raise BrokerProblem(_GONE)
        properties = _properties(PacketTypes.PUBLISH, UserProperty=list(headers.items())) if headers else None
        try:
            published = self._client.publish(topic, body, qos, properties=properties)
        except ValueError as error:
            raise BrokerProblem(f"MQTT cannot publish to {topic}: {error}") from error
        if published.rc != paho.MQTT_ERR_SUCCESS:
            raise BrokerProblem(f"MQTT: {paho.error_string(published.rc)}")
        return published.mid

    def _lost(self, disconnected: asyncio.Future[None]) -> None:
        # asked for, so that the loop does not tell it as well
        disconnected.exception()
        self._gone = True
        self.arrivals.end(BrokerProblem(_GONE))
        for unit in self._unacknowledged.values():
            unit.set_exception(BrokerProblem(_GONE))
            # who waits for room learns it as well
            self._room.release()
        for written in self._unwritten.values():
            if not written.done():
                written.set_exception(BrokerProblem(_GONE))
        self._unacknowledged.clear()
        self._unwritten.clear()

    def _on_connect(
        self, client: paho.Client, userdata: Any, flags: paho.ConnectFlags, reason_code: ReasonCode,
        properties: Properties | None = None,
    ) -> None:  # fmt: skip
        self._room = asyncio.Semaphore(getattr(properties, "ReceiveMaximum", _MOST_UNACKNOWLEDGED))
        super()._on_connect(client, userdata, flags, reason_code, properties)

    def _on_message(self, *arguments: Any) -> None:
        message: paho.MQTTMessage = arguments[-1]
        self._received += 1
        headers = dict(getattr(message.properties, "UserProperty", ()))
        # what was sent at quality of service 0 has no number, and nobody waits for our word
        self.arrivals.add(Delivery(bytes(message.payload), headers, message.mid if message.qos else None))

    def _on_publish(self, *arguments: Any) -> None:
        mid: int = arguments[2]
        reason_code: ReasonCode = arguments[3]
        written = self._unwritten.pop(mid, None)
        if written is not None and not written.done():
            written.set_result(None)
        unit = self._unacknowledged.pop(mid, None)
        if unit is None:
            return
        self._room.release()
        if reason_code.is_failure:
            unit.set_exception(BrokerProblem(f"the MQTT broker did not take a message: {reason_code}"))
        else:
            unit.set_result(None)

    def _on_socket_open(self, client: paho.Client, userdata: Any, sock: PahoSocket) -> None:
        super()._on_socket_open(client, userdata, sock)
        # instead of the library's, which reads a packet at each turn of the loop
        self._loop.call_soon_threadsafe(self._take_over_reading, client, sock)

    def _take_over_reading(self, client: paho.Client, sock: PahoSocket) -> None:
        # who speaks first and no MQTT may be cut off by now
        if sock.fileno() != -1:
            self._loop.add_reader(sock.fileno(), self._read, client)

    def _read(self, client: paho.Client) -> None:
        try:
            for _ in range(_PACKETS_AT_ONCE):
                before = self._received
                client.loop_read()
                if self._received == before:
                    break
            sock = client.socket()
            if isinstance(sock, socket.socket) and _QUICKLY is not None:
                sock.setsockopt(socket.IPPROTO_TCP, _QUICKLY, 1)
        except Exception as error:
            self._fail(error)

    def _on_socket_register_write(self, client: paho.Client, userdata: Any, sock: PahoSocket) -> None:
        if threading.get_ident() == self._thread:
            self._loop.call_soon(self._write, client, userdata, sock)
        else:
            super()._on_socket_register_write(client, userdata, sock)

    def _write(self, client: paho.Client, userdata: Any, sock: PahoSocket) -> None:
        """At once, and by way of the selector only what the socket does not take: that is four calls of the
        system for each message."""
        try:
            client.loop_write()
            if client.want_write() and client.socket() is sock:
                super()._on_socket_register_write(client, userdata, sock)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self._disconnected.done():
            self._disconnected.set_exception(error)


def _properties(kind: int, **values: Any) -> Properties:
    properties = Properties(kind)  # type: ignore[no-untyped-call]
    for name, value in values.items():
        setattr(properties, name, value)
    return properties
