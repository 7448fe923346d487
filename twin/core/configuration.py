"""What can be asked about: a platform, a product, and a workload of one experiment family."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field

from twin.core.fields import Row, flatten, pick, quantity

ConfigurationId = Annotated[str, quantity("Hash of the configuration")]
PlatformId = Annotated[str, quantity("Hash of the platform and the software")]
WorkloadId = Annotated[str, quantity("Hash of the workload")]
MessageBytes = Annotated[
    int, quantity("Message body without headers", unit="bytes", ge=0, le=2**30, example=4096)
]
Persistent = Annotated[
    bool, quantity("Messages survive a restart: each unit of work forces the log", example=False)
]
Instances = Annotated[
    int, quantity("Copies of the flow as threads of one execution group", ge=1, le=1024, example=1)
]
ExecutionGroups = Annotated[
    int, quantity("Processes that each run the flow's instances", ge=1, le=1024, example=1)
]
MessageFormat = Literal["none", "generic_xml", "mrm_xml", "mrm_cwf", "mrm_tds", "swift_mt543"]


class Platform(Row):
    """The machine that runs the broker."""

    os: Annotated[
        Literal["solaris", "aix", "windows", "zos", "linux"],
        quantity("Operating system", example="solaris"),
    ]
    machine: Annotated[str, quantity("Machine model", example="Sun Fire V880")]
    cpus: Annotated[int, quantity("Processors online", ge=1, le=1024, example=4)]
    mhz: Annotated[float, quantity("Processor clock", unit="MHz", gt=0, le=10_000, example=900)]
    memory_mb: Annotated[int, quantity("Main memory", unit="MB", ge=1, example=4096)]
    disks: Annotated[int, quantity("Disk drives in the machine", ge=1, le=10_000, example=5)]
    log_disk: Annotated[
        Literal["scsi", "cached", "solid_state"],
        quantity(
            "What the recovery log is written to; cached means a non-volatile write cache", example="scsi"
        ),
    ]
    network_mbps: Annotated[float, quantity("Network link", unit="Mbit/s", gt=0, example=1000)]


class Software(Row):
    """The product under test."""

    product: Annotated[str, quantity("Product", example="WebSphere Business Integration Message Broker")]
    version: Annotated[str, quantity("Version with its service level", example="5.0 CSD2")]


class MessageFlow(Row):
    """An MQInput node, the nodes under test, an MQOutput node."""

    family: Annotated[Literal["message_flow"], quantity("Experiment family")] = "message_flow"
    node: Annotated[
        Literal[
            "trivial",
            "aggregation",
            "compute",
            "database",
            "filter",
            "flow_order",
            "mapping",
            "route_to_label",
        ],
        quantity("Node under test; trivial is input and output alone", example="compute"),
    ]
    message_bytes: MessageBytes
    persistent: Persistent
    esql: Annotated[
        Literal["none", "simple", "complex", "nested_select", "convert"],
        quantity("What a compute node's program does", example="convert"),
    ] = "none"
    compute_nodes: Annotated[
        int, quantity("Compute nodes in sequence that run the program", ge=0, le=100, example=1)
    ] = 0
    program_repeats: Annotated[
        int, quantity("Times each compute node repeats its program", ge=1, le=1000, example=1)
    ] = 1
    copy_nodes: Annotated[
        int, quantity("Compute nodes that only copy the message", ge=0, le=100, example=0)
    ] = 0
    database_operation: Annotated[
        Literal["none", "insert_delete", "update", "read"],
        quantity("Database work per message", example="none"),
    ] = "none"
    input_format: Annotated[
        MessageFormat, quantity("Format parsed; none when the flow parses nothing", example="generic_xml")
    ] = "none"
    output_format: Annotated[
        MessageFormat, quantity("Format written; none when no new message is built", example="mrm_tds")
    ] = "none"
    destinations: Annotated[
        int, quantity("Entries in the destination list of a RouteToLabel node", ge=0, le=100_000, example=0)
    ] = 0
    instances: Instances = 1
    execution_groups: ExecutionGroups = 1


class Publication(Row):
    """An MQInput node and a Publication node that delivers to subscribers' queues."""

    family: Annotated[Literal["publication"], quantity("Experiment family")] = "publication"
    routing: Annotated[
        Literal["topic", "content"], quantity("What decides who receives a message", example="topic")
    ]
    subscribers: Annotated[
        int, quantity("Subscribers that receive each message", ge=1, le=1_000_000, example=10)
    ]
    message_bytes: MessageBytes
    persistent: Persistent
    instances: Instances = 1
    execution_groups: ExecutionGroups = 1


Workload = Annotated[MessageFlow | Publication, Field(discriminator="family")]
FAMILIES: dict[str, type[Row]] = {
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
