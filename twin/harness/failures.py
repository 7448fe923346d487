"""What can happen to a broker while it is under load, and how it ends."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol

from twin.harness.brokers.interface import BrokerProblem
from twin.harness.brokers.nats_server import NatsServer
from twin.harness.proxy import Proxy, held_port

# longer than a program works on a message, much shorter than one waits for a message that is lost
_REDELIVERY_S = 2.0


class Failure(Protocol):
    async def begin(self) -> None: ...

    async def end(self) -> None:
        """Returns when clients may come back."""


class NetworkCut:
    """Between the clients and the broker, which itself runs on."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    async def begin(self) -> None:
        self._proxy.cut()

    async def end(self) -> None:
        await self._proxy.restore()


class ServerKilled:
    """Without warning (`kill -9`), and started again on what it had stored. What it had handed out and not
    heard of again is handed out again soon: nobody has it any more."""

    def __init__(self, server: NatsServer) -> None:
        self._server = server
        self._held: socket.socket | None = None

    async def begin(self) -> None:
        await asyncio.to_thread(self._server.kill)
        # or another program might be given the port meanwhile
        self._held = held_port(self._server.port)

    async def end(self) -> None:
        try:
            await asyncio.to_thread(self._server.start)
        finally:
            if self._held is not None:
                self._held.close()
        await self._shorten_redelivery()

    async def _shorten_redelivery(self) -> None:
        import nats

        client = await nats.connect(self._server.address, allow_reconnect=False)
        try:
            streams = client.jetstream()
            for stream in await streams.streams_info():
                name = str(stream.config.name)
                for consumer in await streams.consumers_info(name):
                    await streams.add_consumer(name, consumer.config, ack_wait=_REDELIVERY_S)
        except nats.errors.Error as error:
            raise BrokerProblem(f"NATS does not hand out again what it had handed out: {error}") from error
        finally:
            await client.close()
