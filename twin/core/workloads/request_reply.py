"""Requests and replies through one queue manager."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from twin.core.fields import Row, quantity
from twin.core.workloads.quantities import MessageBytes, Persistent


class RequestReply(Row):
    """Requesters put a request and wait for its reply; responders get requests and put the replies."""

    example: ClassVar[dict[str, Any]] = {
        "os": "linux", "machine": "server", "mhz": 3000, "disks": None, "log_disk": "solid_state",
        "product": "IBM MQ", "version": "9.4", "message_bytes": 2048, "persistent": True,
    }  # fmt: skip

    family: Annotated[Literal["request_reply"], quantity("Experiment family")] = "request_reply"
    clients: Annotated[
        int,
        quantity("Requesters, each with one request under way at most", ge=1, le=1_000_000, example=16),
    ]
    message_bytes: MessageBytes
    persistent: Persistent
