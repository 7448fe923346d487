"""A flow as stages, each with a queue that it takes from: one for most flows, three for an aggregation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from twin.core.workloads.live import LiveFlow
from twin.harness.brokers.interface import UNLIMITED, Queue
from twin.harness.flow.addresses import FlowAddresses
from twin.harness.flow.aggregation import FanIn, FanOut, responding
from twin.harness.flow.database import DatabaseProblem, Rows
from twin.harness.flow.nodes import Node, computing, filtering, mapping, ordering, passing, working_on_rows
from twin.harness.flow.offered import refuse_what_is_not_offered
from twin.harness.flow.outputs import Output, to_label, to_matching, to_queue, to_topic
from twin.harness.flow.plan import Plan
from twin.harness.flow.units import Work, one_by_one


@dataclass(frozen=True)
class Stage:
    source: Queue
    work: Work
    # messages that it may hold at a time
    prefetch: int


@dataclass(frozen=True)
class Seat:
    """Which of a flow's instances one is."""

    queue: int = 0
    group: int = 0
    instance: int = 0

    def number(self, flow: LiveFlow) -> int:
        return (self.queue * flow.execution_groups + self.group) * flow.instances + self.instance


@contextmanager
def opened_stages(plan: Plan, seat: Seat) -> Iterator[Sequence[Stage]]:
    """Of one instance, with what it holds open: nothing of it is shared with others."""
    flow, addresses = plan.flow, FlowAddresses.of(plan.flow, plan.prefix)
    refuse_what_is_not_offered(flow)
    source, output = addresses.inputs[seat.queue], _output(flow, addresses)
    share = _share_of_window(flow)
    if flow.node == "aggregation" and addresses.requests is not None:
        replies = addresses.replies[seat.number(flow)]
        yield [
            Stage(source, FanOut(addresses.requests, replies), share),
            Stage(addresses.requests, responding(flow.persistent), share),
            # sets that are not complete are held
            Stage(replies, FanIn(output), UNLIMITED),
        ]
    elif flow.node == "database":
        kind = flow.database or "sqlite"
        if plan.database is None or plan.database.kind != kind:
            raise DatabaseProblem(f"the flow's plan needs a prepared database of {kind}")
        with closing(Rows(plan.database)) as rows:
            yield [Stage(source, one_by_one(working_on_rows(flow, rows), output, rows.commit), share)]
    else:
        yield [Stage(source, one_by_one(_node(flow), output), share)]


def _node(flow: LiveFlow) -> Node:
    match flow.node:
        case "filter":
            return filtering(flow)
        case "compute":
            return computing(flow)
        case "flow_order":
            return ordering(flow)
        case "mapping":
            return mapping(flow)
        case _:
            return passing


def _output(flow: LiveFlow, addresses: FlowAddresses) -> Output:
    if addresses.topic is not None:
        return to_topic(addresses.topic)
    if addresses.output is None:
        return to_matching(addresses.subscribers, flow.input_format)
    if flow.node == "route_to_label":
        return to_label(addresses.output, flow.destinations, flow.input_format)
    return to_queue(addresses.output)


def _share_of_window(flow: LiveFlow) -> int:
    """Of what the driver keeps under way, so that one instance does not hold what others could work on."""
    share = flow.window // (flow.queues * flow.execution_groups * flow.instances)
    return min(UNLIMITED, max(flow.messages_per_commit, share, 1))
