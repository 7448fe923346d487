"""WebSphere MQ on z/OS: costs of calls, storage of objects, client channels, consumption, restart."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from twin.core.fields import Row, quantity
from twin.core.workloads.quantities import MessageBytes, Persistent

_Z990: dict[str, Any] = {
    "os": "zos", "machine": "zSeries 990 LPAR (2084-332)", "cpus": 3, "mhz": None, "memory_mb": None,
    "disks": None, "log_disk": None, "network_mbps": None, "product": "WebSphere MQ", "version": "7.0",
}  # fmt: skip

MessageProperties = Annotated[int, quantity("Properties on each message", ge=0, le=100_000, example=0)]


class TopicPublish(Row):
    """Messages put to a topic, matched against selectors and delivered to subscribers' queues."""

    example: ClassVar[dict[str, Any]] = _Z990

    family: Annotated[Literal["topic_publish"], quantity("Experiment family")] = "topic_publish"
    topic_subscribers: Annotated[
        int, quantity("Subscribers to the topic, receiving or not", ge=0, le=1_000_000, example=1)
    ]
    message_properties: MessageProperties
    selectors: Annotated[
        int,
        quantity(
            "Properties that each subscription selects on; 0 takes every message", ge=0, le=1000, example=0
        ),
    ]
    selected_property: (
        Annotated[int, quantity("The last property that is looked at, from 1", ge=1, le=100_000)] | None
    ) = None
    messages: Annotated[int, quantity("Messages that the cost is for", ge=1, example=1)] = 1
    wanted_messages: Annotated[
        int, quantity("Messages of them that the subscribers want", ge=0, example=1)
    ] = 1
    waiting_getter: Annotated[
        bool, quantity("Messages can go straight to a waiting reader", example=False)
    ] = False
    message_bytes: MessageBytes
    persistent: Persistent


class Subscribe(Row):
    """A subscription made by an application."""

    example: ClassVar[dict[str, Any]] = _Z990

    family: Annotated[Literal["subscribe"], quantity("Experiment family")] = "subscribe"
    durable: Annotated[bool, quantity("The subscription survives the application", example=True)]
    managed: (
        Annotated[bool, quantity("The queue manager provides the destination queue", example=False)] | None
    ) = None
    existing_subscriptions: (
        Annotated[int, quantity("Subscriptions that there are already", ge=0, example=0)] | None
    ) = None


class ClientChannel(Row):
    """Clients over server-connection channels that share conversations or do not."""

    example: ClassVar[dict[str, Any]] = _Z990

    family: Annotated[Literal["client_channel"], quantity("Experiment family")] = "client_channel"
    sharecnv: (
        Annotated[
            int,
            quantity(
                "Conversations that may share a channel instance; 0 is the old protocol",
                ge=0,
                le=1000,
                example=1,
            ),
        ]
        | None
    ) = None
    client_threads: Annotated[
        int, quantity("Threads of the client application", ge=1, le=100_000, example=10)
    ]
    asynchronous_put: Annotated[bool, quantity("Puts do not wait for their response", example=False)] = False
    read_ahead: Annotated[bool, quantity("Messages are sent before they are asked for", example=False)] = (
        False
    )
    ssl: Annotated[bool, quantity("The channel is encrypted", example=False)] = False
    message_bytes: MessageBytes | None = None
    persistent: Persistent | None = None


class StoredObject(Row):
    """Storage that definitions take in a queue manager."""

    example: ClassVar[dict[str, Any]] = _Z990 | {"message_bytes": None, "message_properties": None}

    family: Annotated[Literal["stored_object"], quantity("Experiment family")] = "stored_object"
    object_kind: Annotated[
        Literal["topic", "queue", "subscription", "message"],
        quantity("What is stored", example="topic"),
    ]
    objects: Annotated[int, quantity("How many are added to the queue manager", ge=0, example=1)] = 1
    name_bytes: (
        Annotated[int, quantity("Length of the topic string or the name", unit="bytes", ge=0, example=50)]
        | None
    ) = None
    page_set: Annotated[int, quantity("The page set alone, of several", ge=0, le=99)] | None = None
    message_bytes: MessageBytes | None = None
    message_properties: MessageProperties | None = None
    property_format: (
        Annotated[
            Literal["none", "msgprop", "rfh2", "compat", "dropped"],
            quantity("How a subscription passes properties on (PSPROP); dropped: its queue takes them off"),
        ]
        | None
    ) = None


class Consume(Row):
    """A server application that answers messages from one or several queues."""

    example: ClassVar[dict[str, Any]] = _Z990

    family: Annotated[Literal["consume"], quantity("Experiment family")] = "consume"
    consumption: Annotated[
        Literal["get", "callback"], quantity("Polling with MQGET, or a handler that is called", example="get")
    ]
    queues: Annotated[int, quantity("Queues that are watched", ge=1, example=1)]
    busy_queues: Annotated[int, quantity("Queues of them that get messages", ge=1, example=1)]
    message_bytes: MessageBytes
    persistent: Persistent


class Restart(Row):
    """A queue manager start."""

    example: ClassVar[dict[str, Any]] = _Z990

    family: Annotated[Literal["restart"], quantity("Experiment family")] = "restart"
    buffers: Annotated[int, quantity("Buffers in all buffer pools", ge=0, example=189_000)] | None = None
    durable_subscriptions: (
        Annotated[int, quantity("Durable subscriptions to rebuild", ge=0, example=0)] | None
    ) = None
