"""What can be asked about: a platform, a product, and a workload of one experiment family."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field

from twin.core.fields import Row, flatten, pick, quantity
from twin.core.workloads.broker import MessageFlow, Publication
from twin.core.workloads.cluster import Cluster
from twin.core.workloads.generic import Generic
from twin.core.workloads.hub import RulesHub
from twin.core.workloads.live import LiveFlow, LivePublication
from twin.core.workloads.point_to_point import PointToPoint
from twin.core.workloads.pubsub import BankScenario, FanOut, Loopback
from twin.core.workloads.request_reply import RequestReply
from twin.core.workloads.zos import ClientChannel, Consume, Restart, StoredObject, Subscribe, TopicPublish

ConfigurationId = Annotated[str, quantity("Hash of the configuration")]
PlatformId = Annotated[str, quantity("Hash of the platform and the software")]
WorkloadId = Annotated[str, quantity("Hash of the workload")]


class Platform(Row):
    """The machine that runs the broker. What a source does not tell is left out."""

    os: Annotated[
        Literal["solaris", "aix", "windows", "zos", "linux"],
        quantity("Operating system", example="solaris"),
    ]
    machine: Annotated[str, quantity("Machine model", example="Sun Fire V880")]
    cpus: Annotated[int, quantity("Processors online", ge=1, le=1024, example=4)]
    mhz: Annotated[float, quantity("Processor clock", unit="MHz", gt=0, le=10_000, example=900)] | None = None
    specint_rate95: Annotated[float, quantity("SPECint_rate95 of the machine", gt=0)] | None = None
    lspr_itr: Annotated[float, quantity("LSPR internal throughput ratio, mixed workload", gt=0)] | None = None
    memory_mb: Annotated[int, quantity("Main memory", unit="MB", ge=1, example=4096)] | None = None
    disks: Annotated[int, quantity("Disk drives", ge=1, le=10_000, example=5)] | None = None
    log_disk: (
        Annotated[
            Literal["internal", "scsi", "ssa", "fc_al", "cached", "solid_state", "dasd"],
            quantity("What the recovery log is written to; cached is a non-volatile cache", example="scsi"),
        ]
        | None
    ) = None
    disk_layout: (
        Annotated[
            Literal["dedicated", "striped", "shared"],
            quantity("Logs and queues on disks of their own, striped over several, or on common ones"),
        ]
        | None
    ) = None
    network_mbps: Annotated[float, quantity("Network link", unit="Mbit/s", gt=0, example=1000)] | None = None


class Software(Row):
    """The product under test."""

    product: Annotated[str, quantity("Product", example="WebSphere Business Integration Message Broker")]
    version: Annotated[str, quantity("Version with its service level", example="5.0 CSD2")]


Workload = Annotated[
    MessageFlow
    | Publication
    | RulesHub
    | FanOut
    | Loopback
    | BankScenario
    | Cluster
    | TopicPublish
    | Subscribe
    | ClientChannel
    | StoredObject
    | Consume
    | Restart
    | RequestReply
    | PointToPoint
    | LivePublication
    | LiveFlow
    | Generic,
    Field(discriminator="family"),
]
FAMILIES: dict[str, type[Any]] = {
    member.model_fields["family"].default: member for member in get_args(get_args(Workload)[0])
}


class Configuration(Row):
    """A question: this workload on this product and platform."""

    platform: Platform
    software: Software
    workload: Workload
    offered_rate_msgs_per_s: (
        Annotated[
            float, quantity("Offered load; left out, the question is the maximum rate", unit="msgs/s", gt=0)
        ]
        | None
    ) = None

    @property
    def configuration_id(self) -> str:
        return content_id(self)

    @classmethod
    def from_flat(cls, values: Mapping[str, Any]) -> Configuration:
        """Build from flat column names; a column that no part owns is an error of the whole."""
        family = FAMILIES.get(str(values.get("family")), MessageFlow)
        parts: dict[str, Any] = {
            "platform": pick(values, Platform),
            "software": pick(values, Software),
            "workload": pick(values, family) | {"family": values.get("family")},
        }
        owned = {"family", *(name for part in parts.values() for name in part)}
        return cls.model_validate(
            parts | {name: value for name, value in values.items() if name not in owned}
        )

    def flat(self) -> dict[str, Any]:
        return flatten(self)


def content_id(*parts: BaseModel) -> str:
    """A hash of the content: what is left out does not count, so a new optional column changes no id."""
    content = [part.model_dump(exclude_none=True) for part in parts]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
