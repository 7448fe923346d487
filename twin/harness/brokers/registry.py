"""Every broker that the harness can drive. A new one is a module and a line here."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from twin.harness.brokers.interface import Broker, BrokerProblem
from twin.harness.brokers.nats_server import NatsServer, running_nats_server


async def _nats(address: str) -> Broker:
    from twin.harness.brokers.nats import Nats

    return await Nats.reached(address)


async def _rabbitmq(address: str) -> Broker:
    from twin.harness.brokers.rabbitmq import RabbitMQ

    return await RabbitMQ.reached(address)


async def _mqtt(address: str) -> Broker:
    from twin.harness.brokers.mqtt import Mqtt

    parts = urlsplit(address)
    return await Mqtt.reached(parts.hostname or "", parts.port or 1883, parts.username, parts.password)


_REACHING: dict[str, Callable[[str], Awaitable[Broker]]] = {
    "nats": _nats,
    "rabbitmq": _rabbitmq,
    "mqtt": _mqtt,
}
BROKERS = tuple(_REACHING)
# NATS comes with the environment and is started where no address is given
_USUAL = {"rabbitmq": "amqp://guest:guest@127.0.0.1:5672/", "mqtt": "mqtt://127.0.0.1:1883"}


async def reached(name: str, address: str) -> Broker:
    if name not in _REACHING:
        raise BrokerProblem(f"{name!r} is no broker that is known here: one of {', '.join(BROKERS)}")
    return await _REACHING[name](address)


@dataclass(frozen=True)
class Place:
    """Where a broker is, in plain words that another process understands."""

    broker: str
    address: str
    # ours, or those that the adapter finds
    server: NatsServer | None = None

    async def reached(self) -> Broker:
        return await reached(self.broker, self.address)

    def process_ids(self, broker: Broker) -> Sequence[int]:
        return [self.server.process.pid] if self.server else broker.process_ids


@contextmanager
def places(name: str, address: str | None = None, count: int = 1) -> Iterator[list[Place]]:
    """As many brokers of a kind as an experiment needs. Where we start them they are apart; elsewhere the one
    at the address stands for all."""
    address = address or os.environ.get(f"TWIN_{name.upper()}_URL") or _USUAL.get(name)
    if name not in _REACHING:
        raise BrokerProblem(f"{name!r} is no broker that is known here: one of {', '.join(BROKERS)}")
    if address is not None:
        yield [Place(name, address)] * count
        return
    with _servers(count) as servers:
        yield [Place(name, server.address, server) for server in servers]


@contextmanager
def _servers(count: int) -> Iterator[list[NatsServer]]:
    if count == 0:
        yield []
        return
    with running_nats_server() as first, _servers(count - 1) as others:
        yield [first, *others]
