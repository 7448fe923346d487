"""A message broker: flows of nodes between queues. A copy of a flow is a thread; listener, queue manager and
the clients' programs work beside it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twin.core.configuration import Configuration
from twin.core.workloads.broker import MessageFlow, Publication
from twin.queueing.network import Array, Network, Station, cpu, delay, log
from twin.systems.broker_demands import PARAMETERS, Costs, costs
from twin.systems.model import Batch, Demands, Evaluation, System, Target, printed_constants
from twin.systems.standard import evaluated

_MS = 1e-3
_PRINTED = printed_constants("broker")
# beyond the largest measured persistent message, as far as any column is trusted
_PERSISTENT_REACH = 4

_COMPUTING = ("compute", "flow_order")
# their ESQL names the elements of an XML tree
_XML_PROGRAMS = ("simple", "complex", "nested_select")
_READ_FORMAT = {"filter": "generic_xml"}


def _evaluate(batch: Batch, demands: Demands) -> Evaluation:
    return evaluated(_network(batch, demands, costs(batch, demands)), batch)


def _network(batch: Batch, demands: Demands, cost: Costs) -> Network:
    copies, instances = _copies(batch), batch.number("instances")
    thread_ms = cost.thread * _contention(batch, demands)
    # threads of a process take turns in a part of their work, which is processor time all the same
    locked_ms = thread_ms * np.minimum(demands["locked"], 1.0) * (1.0 - 1.0 / instances)
    # commits of several copies go out with one force
    sharing = copies ** demands["group_commit"]
    return Network(
        stations=[
            cpu(
                (thread_ms - locked_ms) * _MS,
                batch.number("cpus"),
                background=(locked_ms + cost.background) * _MS,
            ),
            Station("process", "serial", locked_ms * _MS, servers=batch.number("execution_groups")),
            # the clients force the log while the flow computes: its own commit does not queue behind theirs,
            # but all of them together are a ceiling
            delay("commit", cost.commit * _MS),
            Station("log", "log", 0.0, (cost.commit + cost.client_log) * _MS, sharing),
            log(cost.database_log * _MS, sharing, name="database log"),
            Station("clients", "pipe", 0.0, cost.clients * _MS),
        ],
        population=copies,
        customers="copies of the flow",
    )


def _copies(batch: Batch) -> Array:
    return batch.number("instances") * batch.number("execution_groups")


def _contention(batch: Batch, demands: Demands) -> Array:
    """How much longer a copy computes because of the others."""
    copies, processors = _copies(batch), batch.number("cpus")
    # a single copy loses time that two together do not
    alone = np.where(copies == 1, demands["alone"], 1.0)
    memory = 1.0 + demands["memory_contention"] * np.minimum(copies, processors) / processors
    heap = 1.0 + demands["spinning"] * np.log2(batch.number("instances"))
    kind = np.where(copies > 1, demands.by("in_parallel", batch, "node", "esql", absent=1.0), 1.0)
    return alone * memory * heap * kind


def _regime(configuration: Configuration) -> str:
    workload = configuration.workload
    assert isinstance(workload, MessageFlow | Publication)
    if workload.instances * workload.execution_groups > 1:
        return "parallel"
    return "persistent" if workload.persistent else "non-persistent"


def _excuse(configuration: Configuration) -> str | None:
    workload = configuration.workload
    assert isinstance(workload, MessageFlow | Publication)
    largest = _PERSISTENT_REACH * _PRINTED["largest_persistent_bytes"]
    if workload.persistent and workload.message_bytes > largest:
        return f"message_bytes: how a log takes persistent messages over {largest:.0f} bytes is not measured"
    if isinstance(workload, Publication):
        if workload.routing == "content" and workload.subscribers > 1:
            return "subscribers: content routing is measured with one subscriber only"
        return None
    return next(_misfits(workload), None)


def _misfits(flow: MessageFlow) -> Iterator[str]:
    """Choices that do not make a flow, or one whose parts were never measured."""
    if flow.node in _COMPUTING:
        yield from _program_misfits(flow)
    elif flow.esql != "none" or flow.compute_nodes or flow.copy_nodes:
        yield f"esql: a {flow.node} flow has no compute node to run a program"
    if flow.node in (*_COMPUTING, "mapping"):
        if "none" in (flow.input_format, flow.output_format):
            yield f"input_format, output_format: a {flow.node} flow parses a message and writes one"
        if (flow.input_format == "swift_mt543") != (flow.output_format == "swift_mt543"):
            yield "input_format: SWIFT messages are measured from and to SWIFT only"
    elif (flow.input_format, flow.output_format) != (_READ_FORMAT.get(flow.node, "none"), "none"):
        yield f"input_format, output_format: not what a {flow.node} flow was measured with"
    if (flow.node == "database") != (flow.database_operation != "none"):
        yield "database_operation: belongs to a database node, and a database node needs one"
    if (flow.node == "route_to_label") != (flow.destinations > 0):
        yield "destinations: belong to a route_to_label node, and such a node needs one"
    if flow.node == "aggregation" and flow.instances * flow.execution_groups > 1:
        yield "instances, execution_groups: an aggregation is measured with one set of flows only"


def _program_misfits(flow: MessageFlow) -> Iterator[str]:
    if flow.esql == "none" or flow.compute_nodes == 0:
        yield f"esql: a {flow.node} flow needs a program and a node that runs it"
    if flow.esql in _XML_PROGRAMS and {flow.input_format, flow.output_format} != {"generic_xml"}:
        yield f"input_format, output_format: the {flow.esql} program is written for generic_xml"
    if flow.esql == "convert" and (flow.compute_nodes > 1 or flow.program_repeats > 1):
        yield "compute_nodes, program_repeats: a message is converted once"


SYSTEM = System(
    name="broker",
    title="Message broker flows",
    families=("message_flow", "publication"),
    targets=(
        Target("throughput_msgs_per_s", 0.012),
        # derived from a CPU use that is printed in whole percent
        Target("cpu_ms_per_msg", 0.03),
        Target("cpu_busy_pct", 0.8, scale="points"),
    ),
    parameters=PARAMETERS,
    evaluate=_evaluate,
    excuse=_excuse,
    regime=_regime,
    # nodes and destinations add up; queues beyond those kept open are known at one point
    reach={
        "subscribers": 2.0,
        "compute_nodes": 10.0,
        "copy_nodes": 10.0,
        "program_repeats": 20.0,
        "destinations": 10.0,
    },
)
