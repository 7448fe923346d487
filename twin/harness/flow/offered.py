"""Which flows the worker runs. A column that would have no effect is refused: it would stand beside the
figures as if it had one."""

from __future__ import annotations

from twin.core.workloads.live import LiveFlow
from twin.harness.brokers.interface import NotOffered
from twin.harness.flow.formats import format_of

# processes that a machine bears beside a broker and a driver, and threads in all of them
MOST_PROCESSES, MOST_THREADS = 64, 512
_BUILDING = ("compute", "flow_order", "mapping")
_RUNNING_PROGRAMS = ("compute", "flow_order")


def refuse_what_is_not_offered(flow: LiveFlow) -> None:
    for format in (flow.input_format, flow.output_format):
        if format != "none":
            format_of(format)
    for is_wrong, reason in _refusals(flow):
        if is_wrong:
            raise NotOffered(f"a flow with node {flow.node}: {reason}")


def _refusals(flow: LiveFlow) -> list[tuple[bool, str]]:
    parses, writes = flow.input_format != "none", flow.output_format != "none"
    by_content = flow.routing == "content"
    looks = by_content or flow.node in ("filter", "database", "route_to_label", *_BUILDING)
    processes = flow.queues * flow.execution_groups
    return [
        (flow.node in ("filter", *_BUILDING) and not parses, "it reads messages: say their input_format"),
        (by_content and not parses, "routing by content reads messages: say their input_format"),
        (parses and not looks, "it reads no message: leave input_format out"),
        (flow.node in _BUILDING and not writes, "it makes new messages: say their output_format"),
        (writes and flow.node not in _BUILDING, "it makes no new message: leave output_format out"),
        (by_content and writes and flow.output_format != flow.input_format,
         "routing by content reads what the node wrote: input_format and output_format must be the same"),
        *_refused_programs(flow),
        ((flow.database_operation != "none") != (flow.node == "database"),
         "database_operation belongs to the database node, and it needs one"),
        (flow.database is not None and flow.node != "database", "database belongs to the database node"),
        ((flow.destinations > 0) != (flow.node == "route_to_label"),
         "destinations belong to the route_to_label node, and it needs one or more"),
        (flow.node == "route_to_label" and flow.routing is not None, "it takes a label or is published"),
        ((flow.routing is None) != (flow.subscribers is None), "routing and subscribers go together"),
        (flow.brokers > 2, "a flow goes from one broker to another, not through more"),
        (flow.brokers == 2 and flow.node == "aggregation", "requests and replies are on one broker"),
        (processes > MOST_PROCESSES,
         f"queues x execution_groups are {processes} processes, and {MOST_PROCESSES} the most"),
        (processes * flow.instances > MOST_THREADS,
         f"queues x execution_groups x instances are {processes * flow.instances} threads, and "
         f"{MOST_THREADS} the most"),
    ]  # fmt: skip


def _refused_programs(flow: LiveFlow) -> list[tuple[bool, str]]:
    describes_itself = flow.output_format == "generic_xml"
    return [
        ((flow.esql != "none") != (flow.compute_nodes > 0), "esql and compute_nodes go together"),
        (flow.esql == "none" and flow.program_repeats > 1, "there is no program to repeat: say esql"),
        (flow.node not in _RUNNING_PROGRAMS and (flow.esql != "none" or flow.copy_nodes > 0),
         "esql and copy_nodes belong to the nodes compute and flow_order"),
        (flow.node in _RUNNING_PROGRAMS and flow.esql == "none" and flow.copy_nodes == 0,
         "it needs compute_nodes with esql, or copy_nodes"),
        (flow.node == "flow_order" and (flow.esql == "none" or flow.copy_nodes == 0),
         "its first branch has copy_nodes, its second compute_nodes with esql"),
        (flow.esql in ("complex", "nested_select") and not describes_itself,
         f"the program {flow.esql} makes fields that only generic_xml can carry"),
        (flow.esql == "nested_select" and flow.compute_nodes > 1,
         "nested_select leaves no orders for a second node: repeat the program instead"),
    ]  # fmt: skip
