"""Queues and topics of a flow, all under a prefix of its own."""

from __future__ import annotations

from dataclasses import dataclass

from twin.core.workloads.live import LiveFlow
from twin.harness.brokers.interface import Address, Queue, Topic


@dataclass(frozen=True)
class FlowAddresses:
    """A driver puts to `inputs`. It takes from `output`, from a subscription to `topic` or from the queues of
    `subscribers`: whichever the flow has."""

    inputs: tuple[Queue, ...]
    output: Queue | None
    topic: Topic | None
    subscribers: tuple[Queue, ...]
    # of an aggregation
    requests: Queue | None
    # one for each instance: only who asked can put the replies together
    replies: tuple[Queue, ...]

    @classmethod
    def of(cls, flow: LiveFlow, prefix: str) -> FlowAddresses:
        def queue(*name: str | int) -> Queue:
            return Queue("-".join(map(str, (prefix, *name))), flow.persistent)

        aggregates = flow.node == "aggregation"
        askers = flow.queues * flow.execution_groups * flow.instances
        matching = flow.subscribers or 0 if flow.routing == "content" else 0
        return cls(
            inputs=tuple(queue("in", at) for at in range(flow.queues)),
            output=queue("out") if flow.routing is None else None,
            topic=Topic(f"{prefix}-topic", flow.persistent) if flow.routing == "topic" else None,
            subscribers=tuple(queue("subscriber", at) for at in range(matching)),
            requests=queue("requests") if aggregates else None,
            replies=tuple(queue("replies", at) for at in range(askers if aggregates else 0)),
        )

    @property
    def beyond_inputs(self) -> list[Address]:
        optional = (self.output, self.topic, self.requests)
        return [*(one for one in optional if one is not None), *self.subscribers, *self.replies]


def addresses_of(flow: LiveFlow, prefix: str, broker: int = 0) -> list[Address]:
    """What must be there on a broker before the flow's workers start. With two brokers, the first has the
    inputs and the second all else."""
    addresses = FlowAddresses.of(flow, prefix)
    if flow.brokers == 1:
        return [*addresses.inputs, *addresses.beyond_inputs]
    return addresses.beyond_inputs if broker else list(addresses.inputs)
