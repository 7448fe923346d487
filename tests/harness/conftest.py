"""Brokers for the harness, and a cable to them that can be cut.

NATS comes with the environment and is started for a module; the others are used where they answer.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from twin.harness.brokers.interface import Broker, BrokerProblem, Connection
from twin.harness.brokers.nats_server import running_nats_server
from twin.harness.brokers.registry import BROKERS, Place, places, reached


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def nats() -> Iterator[Place]:
    with running_nats_server() as server:
        yield Place("nats", server.address, server)


@pytest.fixture(scope="module", params=BROKERS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "nats":
        yield request.getfixturevalue("nats")
        return
    with places(request.param) as [place]:
        try:
            asyncio.run(_answers(place))
        except BrokerProblem as problem:
            pytest.skip(str(problem))
        yield place


async def _answers(place: Place) -> None:
    await place.reached()


@pytest.fixture
async def broker(place: Place) -> Broker:
    return await place.reached()


@pytest.fixture
async def connection(broker: Broker) -> AsyncIterator[Connection]:
    connection = await broker.connect()
    yield connection
    await connection.close()


@pytest.fixture
def own_name() -> str:
    """For a queue or a topic that no other run has."""
    return f"twin-test-{os.getpid()}-{uuid4().hex[:8]}"


@dataclass
class Cable:
    """Ends at the broker, and has an address of its own."""

    to: Place
    _ends: list[asyncio.StreamWriter] = field(default_factory=list)
    _server: asyncio.Server | None = None

    @property
    def place(self) -> Place:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        there = urlsplit(self.to.address)
        user = there.netloc.rpartition("@")[0]
        here = f"{user}@{host}:{port}" if user else f"{host}:{port}"
        return Place(self.to.broker, there._replace(netloc=here).geturl())

    def cut(self) -> None:
        """At once for both sides, without a word."""
        for end in self._ends:
            end.transport.abort()

    async def lay(self) -> None:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)

    async def take_away(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = urlsplit(self.to.address)
        far_reader, far_writer = await asyncio.open_connection(there.hostname, there.port)
        self._ends += [writer, far_writer]
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


@pytest.fixture
async def cable(place: Place) -> AsyncIterator[Cable]:
    cable = Cable(place)
    await cable.lay()
    yield cable
    await cable.take_away()


__all__ = ["reached"]
