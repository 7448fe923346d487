"""A hub of queue managers with rules engines, on a pair of boxes that can stand in for each other."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from twin.core.fields import Row, quantity
from twin.core.workloads.quantities import MessageBytes, MessagesPerCommit, Persistent


class RulesHub(Row):
    """Rules engines reformat persistent messages from one queue to another, on one box of the hub."""

    example: ClassVar[dict[str, Any]] = {
        "machine": "Sun E4500", "mhz": 400, "log_disk": "cached", "disk_layout": "dedicated",
        "product": "MQSeries Integrator", "version": "1.1", "message_bytes": 1024, "persistent": True,
    }  # fmt: skip

    family: Annotated[Literal["rules_hub"], quantity("Experiment family")] = "rules_hub"
    queue_managers: Annotated[int, quantity("Queue managers on the box", ge=1, le=1000, example=5)]
    rules_engines: Annotated[int, quantity("Rules engines per queue manager", ge=1, le=1000, example=1)]
    failed_over: Annotated[bool, quantity("The box also runs the queue managers of the other", example=False)]
    message_bytes: MessageBytes
    persistent: Persistent
    messages_per_commit: MessagesPerCommit
