"""A message broker: flows of nodes between queues. A copy of a flow is a thread; listener, queue manager and
the clients' programs work beside it."""

from __future__ import annotations

import numpy as np

from twin.core.columns import Texts
from twin.queueing.network import Array, Flags, Locks, Network, Station, cpu, delay, log
from twin.systems.broker_demands import PARAMETERS, Costs, costs
from twin.systems.model import Batch, Demands, Evaluation, Refusal, System, Target, printed_constants
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
    processes = batch.number("execution_groups")
    locks = Locks(processes, locked_ms * _MS, np.inf)
    # commits of several copies go out with one force
    sharing = copies ** demands["group_commit"]
    return Network(
        stations=[
            cpu(
                (thread_ms - locked_ms) * _MS,
                batch.number("cpus"),
                background=(locked_ms + cost.background) * _MS,
            ),
            Station("process", "serial", locked_ms * _MS, servers=processes, locks=locks),
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


def _regimes(batch: Batch) -> Texts:
    alone = np.where(batch.flag("persistent"), "persistent", "non-persistent")
    return np.where(_copies(batch) > 1, "parallel", alone).astype(object)


def _flow(batch: Batch) -> Flags:
    return batch.is_("family", "message_flow")


def _computing(batch: Batch) -> Flags:
    return batch.is_("node", *_COMPUTING)


def _has_program(batch: Batch) -> Flags:
    return ~batch.is_("esql", "none") & _flow(batch)


def _both_formats(batch: Batch, *formats: str) -> Flags:
    return batch.is_("input_format", *formats) & batch.is_("output_format", *formats)


def _read_as_measured(batch: Batch) -> Flags:
    """Nodes that build no message were measured with one format each."""
    reads = [_READ_FORMAT.get(node, "none") for node in batch.labels("node")[0]]
    read = np.array(reads, dtype=object)[batch.labels("node")[1]]
    as_measured: Flags = (batch.columns.texts("input_format") == read) & batch.is_("output_format", "none")
    return as_measured


_LARGEST = _PERSISTENT_REACH * _PRINTED["largest_persistent_bytes"]
_REWRITING = (*_COMPUTING, "mapping")
# choices that do not make a flow, or one whose parts were never measured
_REFUSALS = (
    Refusal(
        f"message_bytes: how a log takes persistent messages over {_LARGEST:.0f} bytes is not measured",
        lambda batch: batch.flag("persistent") & (batch.number("message_bytes") > _LARGEST),
    ),
    Refusal(
        "subscribers: content routing is measured with one subscriber only",
        lambda batch: batch.is_("routing", "content") & (batch.number("subscribers") > 1),
    ),
    Refusal(
        "esql: a {node} flow needs a program and a node that runs it",
        lambda batch: _computing(batch) & (~_has_program(batch) | (batch.number("compute_nodes") == 0)),
    ),
    Refusal(
        "input_format, output_format: the {esql} program is written for generic_xml",
        lambda batch: (
            _computing(batch) & batch.is_("esql", *_XML_PROGRAMS) & ~_both_formats(batch, "generic_xml")
        ),
    ),
    Refusal(
        "compute_nodes, program_repeats: a message is converted once",
        lambda batch: (
            _computing(batch)
            & batch.is_("esql", "convert")
            & ((batch.number("compute_nodes") > 1) | (batch.number("program_repeats") > 1))
        ),
    ),
    Refusal(
        "esql: a {node} flow has no compute node to run a program",
        lambda batch: (
            _flow(batch)
            & ~_computing(batch)
            & (_has_program(batch) | (batch.number("compute_nodes") > 0) | (batch.number("copy_nodes") > 0))
        ),
    ),
    Refusal(
        "input_format, output_format: a {node} flow parses a message and writes one",
        lambda batch: (
            batch.is_("node", *_REWRITING)
            & (batch.is_("input_format", "none") | batch.is_("output_format", "none"))
        ),
    ),
    Refusal(
        "input_format: SWIFT messages are measured from and to SWIFT only",
        lambda batch: (
            batch.is_("node", *_REWRITING)
            & (batch.is_("input_format", "swift_mt543") != batch.is_("output_format", "swift_mt543"))
        ),
    ),
    Refusal(
        "input_format, output_format: not what a {node} flow was measured with",
        lambda batch: _flow(batch) & ~batch.is_("node", *_REWRITING) & ~_read_as_measured(batch),
    ),
    Refusal(
        "database_operation: belongs to a database node, and a database node needs one",
        lambda batch: (
            _flow(batch) & (batch.is_("node", "database") == batch.is_("database_operation", "none"))
        ),
    ),
    Refusal(
        "destinations: belong to a route_to_label node, and such a node needs one",
        lambda batch: (
            _flow(batch) & (batch.is_("node", "route_to_label") != (batch.number("destinations") > 0))
        ),
    ),
    Refusal(
        "instances, execution_groups: an aggregation is measured with one set of flows only",
        lambda batch: batch.is_("node", "aggregation") & (_copies(batch) > 1),
    ),
)


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
    refusals=_REFUSALS,
    regimes=_regimes,
    # nodes and destinations add up; queues beyond those kept open are known at one point
    reach={
        "subscribers": 2.0,
        "compute_nodes": 10.0,
        "copy_nodes": 10.0,
        "program_repeats": 20.0,
        "destinations": 10.0,
    },
)
