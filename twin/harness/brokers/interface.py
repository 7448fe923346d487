"""What the harness needs of a broker: queues and topics, units of work, and who pays for them.

All of it is asynchronous. A thread of a worker has an event loop and a connection of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

# of a consumer that may hold any number of messages
UNLIMITED = 1000


class BrokerProblem(Exception):
    """A broker that is absent, refuses us, went away, or has something else under a name of ours. The message
    says what to do."""


class NotOffered(BrokerProblem):
    """The broker has no such thing: a matter of choice, not of failure."""


@dataclass(frozen=True)
class Queue:
    """Each message goes to one of its consumers. A persistent one is on disk before a put returns."""

    name: str
    persistent: bool = False


@dataclass(frozen=True)
class Topic:
    """Each message goes to all subscribers of its key: a topic, or a property of it for `content`."""

    name: str
    persistent: bool = False
    routing: Literal["topic", "content"] = "topic"


Address = Queue | Topic


@dataclass(frozen=True, slots=True)
class Message:
    to: Address
    body: bytes
    # of a topic: what subscribers ask for
    key: str = ""
    # small texts beside the body, such as a correlation id
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Delivery:
    body: bytes
    headers: Mapping[str, str]
    # the client's own handle
    tag: Any = None


class Consumer(Protocol):
    async def get(self) -> Delivery:
        """The next message, however long that takes. Raises BrokerProblem when the connection is gone."""

    async def done(self, deliveries: Sequence[Delivery]) -> None:
        """These, in the order in which they came, need not be delivered again."""

    async def close(self) -> None: ...


class Session(Protocol):
    """One program's conversation: an AMQP channel, or the connection itself where there is nothing smaller.
    Every method raises BrokerProblem, and nothing else, for whatever the broker does."""

    async def declare(self, *addresses: Address) -> None:
        """Make queues and topics. One that is there with other options is a problem; one that is there with
        the same options is not."""

    async def remove(self, *addresses: Address) -> None:
        """With all messages; what is not there is no problem."""

    async def put(self, messages: Sequence[Message]) -> None:
        """One unit of work: returns when the broker has all of it, on disk where that is persistent."""

    async def send(self, message: Message) -> None:
        """Hand over without waiting for the broker's word; waits only while buffers are full."""

    async def consume(self, queue: Queue, prefetch: int = UNLIMITED) -> Consumer:
        """`prefetch`: messages that it may hold before it is done with them."""

    async def subscribe(self, topic: Topic, key: str, prefetch: int = UNLIMITED) -> Consumer:
        """A subscriber of its own; it is there when this returns, and gone with its consumer's close."""


class Connection(Protocol):
    async def session(self) -> Session:
        """Sessions of one connection share its socket."""

    async def close(self) -> None: ...


class Broker(Protocol):
    """A broker that runs and can be reached."""

    # `nats`, `rabbitmq`, `mqtt`
    name: str
    # columns of a configuration
    product: str
    version: str

    @property
    def process_ids(self) -> Sequence[int]:
        """Its processes on this machine, for their processor time; empty where they are not to be seen."""

    async def connect(self) -> Connection: ...
