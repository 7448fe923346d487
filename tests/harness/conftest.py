"""Brokers for the harness, and a way to them that can be cut.

NATS comes with the environment and is started for a module; the others are used where they answer. Tests that
wait for a broker are coroutines: httpx brings anyio, which runs them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from twin.harness.brokers.interface import Broker, BrokerProblem, Connection, Queue, Topic
from twin.harness.brokers.nats_server import running_nats_server
from twin.harness.brokers.registry import BROKERS, Place, places
from twin.harness.proxy import Proxy, proxied


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def nats_place() -> Iterator[Place]:
    with running_nats_server() as server:
        yield Place("nats", server.address, server)


@pytest.fixture(scope="module")
def rabbitmq_place() -> Iterator[Place]:
    with _place_that_answers("rabbitmq") as place:
        yield place


@pytest.fixture(scope="module")
def mqtt_place() -> Iterator[Place]:
    with _place_that_answers("mqtt") as place:
        yield place


@pytest.fixture(scope="module", params=BROKERS)
def place(request: pytest.FixtureRequest) -> Place:
    return request.getfixturevalue(f"{request.param}_place")


@contextmanager
def _place_that_answers(name: str) -> Iterator[Place]:
    with places(name) as [place]:
        try:
            asyncio.run(place.reached())
        except BrokerProblem as problem:
            pytest.skip(str(problem))
        yield place


@pytest.fixture
async def broker(place: Place) -> Broker:
    return await place.reached()


@pytest.fixture
async def connection(broker: Broker) -> AsyncIterator[Connection]:
    connection = await broker.connect()
    yield connection
    await connection.close()


@pytest.fixture
async def own_name(place: Place) -> AsyncIterator[str]:
    """For a queue or a topic that no other test has, and that is gone afterwards."""
    name = f"twin-test-{os.getpid()}-{uuid4().hex[:8]}"
    yield name
    connection = await (await place.reached()).connect()
    await (await connection.session()).remove(Queue(name, True), Topic(name, True))
    await connection.close()


@dataclass
class Cable:
    """Leads to a broker."""

    place: Place
    proxy: Proxy

    def cut(self) -> None:
        self.proxy.cut()


@pytest.fixture
async def cable(place: Place) -> AsyncIterator[Cable]:
    there = urlsplit(place.address)
    async with proxied(str(there.hostname), there.port or 0) as proxy:
        near = there.netloc.replace(f":{there.port}", f":{proxy.port}")
        yield Cable(Place(place.broker, there._replace(netloc=near).geturl()), proxy)
