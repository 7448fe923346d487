"""Message flows of a broker: nodes, formats, parallel copies, publication."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from twin.core.fields import Row, quantity
from twin.core.workloads.quantities import ExecutionGroups, Instances, MessageBytes, Persistent, Subscribers

MessageFormat = Literal["none", "generic_xml", "mrm_xml", "mrm_cwf", "mrm_tds", "swift_mt543"]


class MessageFlow(Row):
    """An MQInput node, the nodes under test, an MQOutput node."""

    example: ClassVar[dict[str, Any]] = {}

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

    example: ClassVar[dict[str, Any]] = {}

    family: Annotated[Literal["publication"], quantity("Experiment family")] = "publication"
    routing: Annotated[
        Literal["topic", "content"], quantity("What decides who receives a message", example="topic")
    ]
    subscribers: Subscribers
    message_bytes: MessageBytes
    persistent: Persistent
    instances: Instances = 1
    execution_groups: ExecutionGroups = 1
