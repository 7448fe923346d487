"""Messages through queues of a broker, from producers to consumers."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from twin.core.fields import Row, quantity
from twin.core.workloads.quantities import MessageBytes, MessagesPerCommit, Persistent


class PointToPoint(Row):
    """Producers send as fast as they may and consumers take what comes; either may be missing."""

    example: ClassVar[dict[str, Any]] = {
        "os": "linux", "machine": "server", "mhz": 3000, "disks": None, "log_disk": "solid_state",
        "product": "RabbitMQ", "version": "4.0", "message_bytes": 1024, "persistent": True,
        "messages_per_commit": 1,
    }  # fmt: skip

    family: Annotated[Literal["point_to_point"], quantity("Experiment family")] = "point_to_point"
    producers: Annotated[int, quantity("Programs that send", ge=0, le=1_000_000, example=1)]
    consumers: Annotated[int, quantity("Programs that receive", ge=0, le=1_000_000, example=1)]
    message_bytes: MessageBytes
    persistent: Persistent
    messages_per_commit: MessagesPerCommit = 1
    window: (
        Annotated[
            int,
            quantity("Messages that a producer may have unconfirmed; left out, it waits for none",
                     ge=1, le=1_000_000, example=100),
        ]
        | None
    ) = None  # fmt: skip
    prefetch: (
        Annotated[
            int,
            quantity("Messages that a consumer may hold unacknowledged; left out, any number",
                     ge=1, le=1_000_000, example=200),
        ]
        | None
    ) = None  # fmt: skip
    queues: Annotated[int, quantity("Queues, topics or partitions that share the load", ge=1, example=1)] = 1
    connections: (
        Annotated[
            int,
            quantity("Connections that all programs share; left out, each has its own", ge=1, le=1_000_000),
        ]
        | None
    ) = None  # fmt: skip
