"""The reports' experiments on a live broker: publications to subscribers, and flows of our own worker.

They have families of their own although the reports measured the like: what a worker written in Python costs
says nothing about a product of that time, and the other way round.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from twin.core.fields import Row, quantity
from twin.core.workloads.broker import MessageFlow
from twin.core.workloads.quantities import MessageBytes, MessagesPerCommit, Persistent, Subscribers

_LIVE: dict[str, Any] = {
    "os": "linux", "machine": "server", "mhz": 3000, "disks": None, "log_disk": "solid_state",
    "product": "NATS", "version": "2.15", "message_bytes": 1024,
}  # fmt: skip
Routing = Literal["topic", "content"]
Window = Annotated[int, quantity("Messages that the driver keeps under way", ge=1, le=1_000_000, example=100)]


class LivePublication(Row):
    """Publications, each delivered to every subscriber before the driver makes the next."""

    example: ClassVar[dict[str, Any]] = _LIVE

    family: Annotated[Literal["live_publication"], quantity("Experiment family")] = "live_publication"
    subscribers: Subscribers
    message_bytes: MessageBytes
    persistent: Persistent
    routing: Annotated[Routing, quantity("What decides who receives a message", example="topic")] = "topic"
    subscriber_queues: Annotated[
        Literal["shared", "own"],
        quantity("One queue for all subscribers, told apart by a correlation id, or one for each",
                 example="own"),
    ] = "own"  # fmt: skip
    idle_subscribers: Annotated[
        int, quantity("Subscribers to topics that nobody publishes", ge=0, le=10_000_000, example=0)
    ] = 0
    window: Window = 1


class LiveFlow(MessageFlow):
    """A flow worker takes messages from queues of a broker, works on each and puts it to the next queue. Its
    instances are threads, its execution groups processes for each queue."""

    example: ClassVar[dict[str, Any]] = _LIVE | {"esql": "simple", "compute_nodes": 1}

    family: Annotated[Literal["live_flow"], quantity("Experiment family")] = "live_flow"  # type: ignore[assignment]
    window: Window = 100
    messages_per_commit: MessagesPerCommit = 1
    queues: Annotated[
        int, quantity("Input queues, each with workers of its own", ge=1, le=1000, example=1)
    ] = 1
    brokers: Annotated[
        int, quantity("Brokers that a message goes through in turn", ge=1, le=10, example=1)
    ] = 1
    routing: (
        Annotated[Routing, quantity("What decides who receives a message; left out, it goes to one queue")]
        | None
    ) = None
    subscribers: Subscribers | None = None
    database: (
        Annotated[
            Literal["sqlite", "postgresql"], quantity("What the database node works on", example="sqlite")
        ]
        | None
    ) = None
