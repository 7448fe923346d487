"""Publish and subscribe: fan-out, loop-back of two brokers, a bank's scenario."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from twin.core.fields import Row, quantity
from twin.core.workloads.quantities import BatchSize, MessageBytes, Persistent, Subscribers

_J50: dict[str, Any] = {
    "os": "aix", "machine": "RS/6000 J50", "cpus": 8, "mhz": 200, "specint_rate95": 509, "memory_mb": 1024,
    "disks": 9, "log_disk": "ssa", "network_mbps": 16, "version": "5.0",
    "product": "MQSeries Publish/Subscribe",
}  # fmt: skip

SyncpointIfPersistent = Annotated[
    bool, quantity("Non-persistent messages are handled outside syncpoint", example=True)
]


class FanOut(Row):
    """One publication, delivered to every subscriber; the time until the last has it."""

    example: ClassVar[dict[str, Any]] = _J50 | {"message_bytes": 1000}

    family: Annotated[Literal["fan_out"], quantity("Experiment family")] = "fan_out"
    broker: Annotated[
        Literal["genuine", "simulated"],
        quantity("The product, or programs that put and get like it", example="genuine"),
    ]
    subscribers: Subscribers
    message_bytes: MessageBytes
    persistent: Persistent
    syncpoint_if_persistent: SyncpointIfPersistent
    subscriber_queues: Annotated[
        Literal["shared", "own"], quantity("One queue for all subscribers or one for each", example="shared")
    ] = "shared"
    idle_subscribers: Annotated[
        int, quantity("Subscribers to topics that nobody publishes", ge=0, le=10_000_000, example=0)
    ] = 0
    idle_topics: Annotated[
        Literal["none", "single", "multiple"], quantity("Topics of the idle subscribers", example="none")
    ] = "none"
    publications: Annotated[
        int, quantity("Publications made before the first is read back", ge=1, le=100_000, example=1)
    ] = 1


class Loopback(Row):
    """A message goes through two brokers and back; the mean time of a round trip."""

    example: ClassVar[dict[str, Any]] = _J50

    family: Annotated[Literal["loopback"], quantity("Experiment family")] = "loopback"
    path: Annotated[
        Literal["genuine", "simulated", "channel"],
        quantity("Brokers, programs in their place, or queue definitions alone", example="genuine"),
    ]
    batch_size: BatchSize
    message_bytes: MessageBytes
    persistent: Persistent
    syncpoint_if_persistent: SyncpointIfPersistent


class BankScenario(Row):
    """A publisher, a broker and subscribers; the rate is raised until the broker lags."""

    example: ClassVar[dict[str, Any]] = _J50 | {"persistent": True, "subscribers": 3, "batch_size": 50}

    family: Annotated[Literal["bank"], quantity("Experiment family")] = "bank"
    subscribers: Subscribers
    message_bytes: MessageBytes
    persistent: Persistent
    batch_size: BatchSize
