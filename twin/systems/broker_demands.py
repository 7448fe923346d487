"""What a message costs a broker: processor time of its flow and of the queue manager beside it, log writes,
and what the clients need to send and receive it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from scipy.special import expit

from twin.core.workloads.broker import MessageFlow, MessageFormat
from twin.queueing.network import Array, Flags
from twin.systems.model import Batch, Demands, Parameter, printed_constants, write_times

_KB = 1024
_PRINTED = printed_constants("broker")

_UNKNOWN = 1.0
_NO_DIFFERENCE = "no difference expected"
_CALLS = "judged: some hundred thousand instructions at 900 MHz"
_COPIES = "judged: a few passes over each byte at 900 MHz"
_FIELDS = "judged: thirty fields at some tens of microseconds each"
_HEAP = "judged: the threads of a process share its heap"


def _choices(column: str) -> list[str]:
    """What a column of a message flow can be, without `none`."""
    return [one for one in get_args(MessageFlow.model_fields[column].annotation) if one != "none"]


_FORMATS = [one for one in get_args(MessageFormat) if one != "none"]
# every other format is described in a message set
_MODELLED = [one for one in _FORMATS if one != "generic_xml"]
_XML = ("generic_xml", "mrm_xml")
# an aggregation is several flows and is told apart
_NODES = [one for one in _choices("node") if one not in ("trivial", "aggregation")]
# a conversion is what its two formats cost
_PROGRAMS = [one for one in _choices("esql") if one != "convert"]
# node and program of a flow; a publication has neither
_KINDS_OF_FLOW = [
    *(f"{node}/none" for node in ("trivial", *_NODES) if node not in ("compute", "flow_order")),
    *(f"{node}/{program}" for node in ("compute", "flow_order") for program in _choices("esql")),
    "None/None",
]
# those that have the queue manager and the database commit together
_COORDINATED = ("insert_delete", "update")


def _each(
    group: str, labels: Sequence[str], unit: str, prior: float, spread: float, source: str
) -> Iterator[Parameter]:
    for label in labels:
        yield Parameter(f"{group}[{label}]", unit, prior, spread, source)


_THREAD = (
    Parameter("transport_ms", "ms", 0.4, _UNKNOWN, _CALLS),
    Parameter("transport_ms_per_kb", "ms/KB", 0.02, _UNKNOWN, _COPIES),
    Parameter("size_growth", "", 1.0, 0.2, "bytes cost in proportion"),
    # of each node that a message passes
    Parameter("node_ms", "ms", 0.2, _UNKNOWN, _CALLS),
    *_each("node", [*_NODES, "publication"], "", 1.0, 0.6, _NO_DIFFERENCE),
    Parameter("copy_ms", "ms", 0.3, _UNKNOWN, _FIELDS),
    *_each("parse_ms", _FORMATS, "ms", 1.0, _UNKNOWN, _FIELDS),
    *_each("write_ms", _FORMATS, "ms", 1.0, _UNKNOWN, _FIELDS),
    *_each("parse_ms_per_kb", _FORMATS, "ms/KB", 0.05, _UNKNOWN, _COPIES),
    *_each("write_ms_per_kb", _FORMATS, "ms/KB", 0.05, _UNKNOWN, _COPIES),
    # finding the description of a modelled message, once for both directions
    Parameter("message_set_ms", "ms", 1.0, _UNKNOWN, _FIELDS),
    Parameter("mapped", "", 1.0, 0.1, "a mapping copies the same fields as ESQL, wbimb-v5-solaris line 478"),
    *_each("program_ms", _PROGRAMS, "ms", 1.0, _UNKNOWN, _CALLS),
    # a program's message against the converted one: cost of its fields, part of its body that is worked on
    Parameter("fields[simple]", "", 0.3, 0.5, "less than 10 fields against 31, wbimb-v5-solaris line 785"),
    Parameter("fields[complex]", "", 1.0, 0.5, "20 elements, wbimb-v5-solaris line 849"),
    Parameter("fields[nested_select]", "", 1.0, 0.5, _NO_DIFFERENCE),
    Parameter("body[simple]", "", 1.0, 0.5, _NO_DIFFERENCE),
    Parameter("body[complex]", "", 1.0, 0.1, _NO_DIFFERENCE),
    Parameter("body[nested_select]", "", 0.3, 0.7, "no padding is selected, wbimb-v5-solaris line 904"),
    *_each("body", ["filter", "database", "content"], "", 1.0, 0.5, _NO_DIFFERENCE),
    Parameter("window_kb", "KB", 32.0, 0.7, "judged: up to the wanted field, wbimb-v5-solaris line 441"),
    Parameter("content_ms", "ms", 1.0, _UNKNOWN, _CALLS),
    Parameter("destination_ms", "ms", 0.03, _UNKNOWN, "judged: a field made and read"),
    Parameter("delivery_ms", "ms", 0.2, _UNKNOWN, "judged: a put, half of moving a message"),
    Parameter("delivery_ms_per_kb", "ms/KB", 0.005, _UNKNOWN, "judged: a put, half of moving a message"),
    Parameter("opening", "", 1.0, _UNKNOWN, "judged: opening a queue costs as much as a put to it"),
    Parameter("database_ms", "ms", 0.5, _UNKNOWN, _CALLS),
    Parameter("database[insert_delete]", "", 2.0, 0.3, "two statements, wbimb-v5-solaris line 383"),
    Parameter("database[update]", "", 1.0, 0.3, "one statement, wbimb-v5-solaris line 398"),
    Parameter("database[read]", "", 1.0, 0.3, "one statement, wbimb-v5-solaris line 413"),
    Parameter("aggregation_ms", "ms", 10.0, _UNKNOWN, "judged: ten messages through flows and a database"),
)
_BACKGROUND = (
    Parameter("listener_ms", "ms", 0.5, _UNKNOWN, _CALLS),
    Parameter("listener_ms_per_kb", "ms/KB", 0.02, _UNKNOWN, _COPIES),
    *_each("listener", [*_choices("node"), "copied"], "", 1.0, 0.3, _NO_DIFFERENCE),
    Parameter("housekeeping", "", 0.03, 0.7, "judged: a system always takes a few percent of a processor"),
    Parameter("consumer_ms", "ms", 0.2, _UNKNOWN, "judged: a get, half of moving a message"),
    Parameter("consumer_ms_per_kb", "ms/KB", 0.005, _UNKNOWN, "judged: a get, half of moving a message"),
    Parameter("coordination_ms", "ms", 1.0, _UNKNOWN, _CALLS),
    Parameter("logging_ms", "ms", 1.0, _UNKNOWN, _CALLS),
    Parameter("logging_ms_per_kb", "ms/KB", 0.05, _UNKNOWN, _COPIES),
    Parameter("logged_delivery_ms", "ms", 0.2, _UNKNOWN, "judged: logging a put costs as much as the put"),
    Parameter("logged_consumer_ms", "ms", 0.2, _UNKNOWN, "judged: logging a get costs as much as the get"),
    # of a message that is written anew, against the one that was read
    Parameter("sent[nested_select]", "", 0.3, 0.7, "no padding is selected, wbimb-v5-solaris line 904"),
    *_each("sent", ["simple", "complex", "convert"], "", 0.9, 0.1, "judged: white space is not written"),
    # the driving machine: a ceiling for cheap flows and large messages
    Parameter("client_ms", "ms", 0.4, _UNKNOWN, _CALLS),
    Parameter("client_ms_per_kb", "ms/KB", 0.05, _UNKNOWN, _COPIES),
)
_LOG = (
    *write_times("force_ms"),
    # beside the force of each commit, the log writes the pages that messages fill
    Parameter("pages_per_kb", "1/KB", 0.25, 0.5, "judged: log pages of 4 KB, each a write"),
    Parameter("waited_pages", "", 0.5, 0.5, "judged: half of the pages are full before the commit"),
    # of a force, in which a flow must be done to go out with the next
    Parameter("gap", "", 0.5, 0.7, "judged: on average half of a force in progress is still to come"),
    Parameter("gap_sharpness", "", 10.0, 0.7, "judged: a few percent of jitter"),
    Parameter("coordination_forces", "", 4.0, 0.3, "two-phase commit: both managers prepare and commit"),
    Parameter("aggregation_forces", "", 10.0, 0.7, "judged: ten inserts, wbimb-v5-solaris line 286"),
)
_COPIES_OF_A_FLOW = (
    Parameter("alone", "", 1.0, 0.1, _NO_DIFFERENCE),
    Parameter("memory_contention", "", 0.1, 0.7, "judged: four processors on one memory lose a tenth"),
    # growth of a thread's work with each doubling of threads, and the part done one thread at a time
    Parameter("spinning", "", 0.1, 0.7, _HEAP),
    Parameter("locked", "", 0.05, 0.7, _HEAP),
    # one kind of flow is measured in parallel; what holds for the others is open
    *_each("in_parallel", _KINDS_OF_FLOW, "", 1.0, 0.3, "no difference expected between kinds of flow"),
    Parameter("group_commit", "", 0.5, 0.5, "judged: as many commits as the root of the copies"),
)
PARAMETERS: tuple[Parameter, ...] = (*_THREAD, *_BACKGROUND, *_LOG, *_COPIES_OF_A_FLOW)


@dataclass(frozen=True)
class Costs:
    """Milliseconds per message, of a flow that has the machine to itself."""

    thread: Array
    background: Array
    # forced writes that the flow waits for, and those of the clients
    commit: Array
    client_log: Array
    database_log: Array
    clients: Array


def costs(batch: Batch, demands: Demands) -> Costs:
    message = _Message(batch, demands)
    thread = batch.cpu_ratio * _thread_ms(message)
    force_ms = demands.by("force_ms", batch, "log_disk", absent=demands["force_ms[scsi]"])
    commit, client_log = _log_writes(message, thread / force_ms)
    database_forces = (
        demands["coordination_forces"] * message.coordinated
        + demands["aggregation_forces"] * message.aggregated
    )
    return Costs(
        thread=thread,
        background=batch.cpu_ratio * _background_ms(message) + demands["housekeeping"] * thread,
        commit=force_ms * commit,
        client_log=force_ms * client_log,
        database_log=force_ms * database_forces,
        clients=batch.network_ratio * (demands["client_ms"] + demands["client_ms_per_kb"] * message.moved_kb),
    )


class _Message:
    """What the costs depend on, in columns."""

    def __init__(self, batch: Batch, demands: Demands) -> None:
        self.batch, self.demands = batch, demands
        self.kb = batch.number("message_bytes") / _KB
        selecting = batch.is_("esql", "nested_select")
        # pages of the log are written whole: only a selection is so much shorter that it saves some
        self.kb_out = self.kb * np.where(selecting, demands["sent[nested_select]"], 1.0)
        sent = np.minimum(demands.by("sent", batch, "esql", absent=1.0), 1.0)
        # a large message outgrows buffers and costs more than in proportion
        self.grown_kb = self.kb ** demands["size_growth"]
        self.moved_kb = (self.kb * (1.0 + sent) / 2) ** demands["size_growth"]
        self.persistent: Flags = batch.flag("persistent")
        self.deliveries = batch.number("subscribers", absent=1.0)
        self.compute_nodes = batch.number("compute_nodes", absent=0.0)
        self.copy_nodes = batch.number("copy_nodes", absent=0.0)
        self.aggregated: Flags = batch.is_("node", "aggregation")
        self.coordinated: Flags = batch.is_("database_operation", *_COORDINATED)

    def by(self, group: str, *columns: str, absent: float = 0.0) -> Array:
        return self.demands.by(group, self.batch, *columns, absent=absent)


def _thread_ms(message: _Message) -> Array:
    demands = message.demands
    transport = demands["transport_ms"] + demands["transport_ms_per_kb"] * message.moved_kb
    return (
        transport
        + _nodes_ms(message)
        + _formats_ms(message)
        + _looking_ms(message)
        + _publication_ms(message)
    )


def _nodes_ms(message: _Message) -> Array:
    batch, demands = message.batch, message.demands
    node_ms = demands["node_ms"] * demands["node[compute]"]
    # a node copies the whole tree before it works on it; a conversion makes its output field by field
    program_tree = demands["copy_ms"] * message.by("fields", "esql")
    copied_tree = demands["copy_ms"] * message.by("fields", "esql", absent=1.0)
    computing = message.compute_nodes * (node_ms + program_tree) + message.copy_nodes * (
        node_ms + copied_tree
    )
    runs = message.compute_nodes * batch.number("program_repeats", absent=1.0)
    other = demands["node_ms"] * message.by("node", "node") * ~batch.is_("node", "compute")
    return (
        computing
        + runs * message.by("program_ms", "esql")
        + other
        + demands["database_ms"] * message.by("database", "database_operation")
        + demands["destination_ms"] * batch.number("destinations", absent=0.0)
        + demands["aggregation_ms"] * message.aggregated
    )


def _formats_ms(message: _Message) -> Array:
    """Parsing what comes in and writing what goes out: once per message, whatever the number of nodes."""
    batch, demands = message.batch, message.demands
    rewritten = ~batch.is_("output_format", "none", "None")
    modelled = batch.is_("input_format", *_MODELLED) | batch.is_("output_format", *_MODELLED)
    per_message = (
        message.by("parse_ms", "input_format")
        + message.by("write_ms", "output_format")
        + demands["message_set_ms"] * modelled
    )
    parsed_kb = np.where(batch.is_("input_format", *_XML), message.grown_kb, message.kb)
    per_body = (
        message.by("parse_ms_per_kb", "input_format") * parsed_kb
        + message.by("write_ms_per_kb", "output_format") * message.kb
    )
    # the demands are those of the conversion tests; other programs have messages of their own
    fields = message.by("fields", "esql", absent=1.0)
    fields = fields * np.where(batch.is_("node", "mapping"), demands["mapped"], 1.0)
    return rewritten * (fields * per_message + message.by("body", "esql", absent=1.0) * per_body)


def _looking_ms(message: _Message) -> Array:
    """Nodes that only read need the body up to a field, content routing needs all of it."""
    xml_ms_per_kb = message.demands["parse_ms_per_kb[generic_xml]"]
    up_to_field_kb = message.kb / (1.0 + message.kb / message.demands["window_kb"])
    looked_at = message.by("body", "node") * up_to_field_kb + message.by("body", "routing") * message.kb
    return xml_ms_per_kb * looked_at


def _publication_ms(message: _Message) -> Array:
    """The first delivery is the output of any flow."""
    demands, further = message.demands, message.deliveries - 1.0
    put_ms = demands["delivery_ms"] + demands["logged_delivery_ms"] * message.persistent
    deliveries = further * (put_ms + demands["delivery_ms_per_kb"] * message.grown_kb)
    # queues beyond those kept open must be opened for each message
    opened = demands["opening"] * put_ms * np.maximum(message.deliveries - _PRINTED["open_queues"], 0.0)
    node = demands["node_ms"] * demands["node[publication]"]
    matching = demands["content_ms"] * message.batch.is_("routing", "content")
    total: Array = node + matching + deliveries + opened
    return np.where(message.batch.is_("family", "publication"), total, 0.0)


def _background_ms(message: _Message) -> Array:
    demands = message.demands
    listener = demands["listener_ms"] + demands["listener_ms_per_kb"] * message.moved_kb
    listener = listener * message.by("listener", "node", absent=1.0)
    listener = listener * np.where(message.copy_nodes > 0, demands["listener[copied]"], 1.0)
    # a program on the same machine takes what the further subscribers get
    get_ms = demands["consumer_ms"] + demands["logged_consumer_ms"] * message.persistent
    consumers = (message.deliveries - 1.0) * (get_ms + demands["consumer_ms_per_kb"] * message.grown_kb)
    units_of_work = np.where(message.aggregated, 1.0 + _PRINTED["aggregated_requests"], 1.0)
    logging = demands["logging_ms"] + demands["logging_ms_per_kb"] * message.kb
    coordination = demands["coordination_ms"] * message.coordinated
    return listener + consumers + message.persistent * units_of_work * logging + coordination


def _log_writes(message: _Message, thread_per_force: Array) -> tuple[Array, Array]:
    """Of the flow's unit of work, and of the client that puts and gets."""
    demands = message.demands
    units_of_work = np.where(message.aggregated, _PRINTED["units_of_work_in_turn"], 1.0)
    pages_in = demands["pages_per_kb"] * message.kb
    pages_out = demands["pages_per_kb"] * message.kb_out * message.deliveries
    waited_pages = np.minimum(demands["waited_pages"], 1.0) * pages_out
    # a flow that is done soon after the force that let its message in goes out with the next one; later it
    # has missed that and needs a force of its own
    missed = expit(demands["gap_sharpness"] * np.log(thread_per_force / demands["gap"]))
    commit = units_of_work + waited_pages
    clients = _PRINTED["client_forces"] + missed + pages_in + pages_out - waited_pages
    return message.persistent * commit, message.persistent * clients
