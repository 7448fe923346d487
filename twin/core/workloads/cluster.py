"""Large clusters: many channel pairs to one hub, and their recovery when the network fails."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from twin.core.fields import Row, quantity
from twin.core.workloads.quantities import MessageBytes, Persistent


class Cluster(Row):
    """Branches send requests to a hub over channel pairs at a fixed rate."""

    example: ClassVar[dict[str, Any]] = {
        "os": "windows", "machine": "Netfinity 8500R", "mhz": 700, "memory_mb": 8192, "disks": 3,
        "product": "WebSphere MQ", "version": "5.3 CSD03", "persistent": True, "offered_rate_msgs_per_s": 100,
    }  # fmt: skip

    family: Annotated[Literal["cluster"], quantity("Experiment family")] = "cluster"
    channel_pairs: Annotated[int, quantity("Channel pairs: branches", ge=1, le=1_000_000, example=1000)]
    trusted: Annotated[bool, quantity("Channels run inside the queue manager's processes", example=False)]
    start_method: Annotated[
        Literal["amqmdain", "strmqm"],
        quantity("How queue manager and listener are started", example="amqmdain"),
    ]
    tuned: Annotated[bool, quantity("Pooling processes and agents have more threads", example=False)]
    suppressed_messages: Annotated[
        int, quantity("Channel error messages that are not logged each time", ge=0, le=20, example=8)
    ]
    retry_interval_s: Annotated[
        float, quantity("Short retry interval of a channel", unit="s", gt=0, example=60)
    ]
    heartbeat_s: Annotated[float, quantity("Heartbeat interval of a channel", unit="s", gt=0, example=60)]
    message_bytes: MessageBytes
    persistent: Persistent
