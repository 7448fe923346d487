"""The reports' experiments on a live broker: publications to subscribers, and our own flow worker.

Driver, worker and broker share one machine. A publication is made when every subscriber has the one before,
so its time is the sum of what it waits for. A flow keeps messages waiting, so the workers' threads decide:
each is held while it computes and while its put is on its way to the disk; threads of one process compute in
turn.
"""

from __future__ import annotations

import numpy as np

from twin.core.columns import Texts
from twin.queueing.network import Array, Network, Station, cpu, delay, log, serial
from twin.systems.model import (
    MACHINE,
    Batch,
    Demands,
    Effect,
    Evaluation,
    Parameter,
    Refusal,
    System,
    Target,
    write_times,
)
from twin.systems.standard import evaluated

_MS = 1e-3
_UNKNOWN = 1.0
_CALL = "judged: some thousand lines of Python, a tenth of a millisecond"
_COPY = "judged: five copies at 1 GB/s"
_FIELDS = "judged: thirty fields at 5 microseconds"

_NODES = ("filter", "compute", "database", "flow_order", "mapping", "route_to_label", "aggregation")
_PROGRAMS = ("simple", "complex", "nested_select", "convert")
_FORMATS = ("generic_xml", "mrm_xml", "mrm_cwf", "mrm_tds")
_OPERATIONS = ("insert_delete", "update", "read")


def _each(group: str, labels: tuple[str, ...], prior: float, source: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(f"{group}[{one}]", "ms", prior, _UNKNOWN, source) for one in labels)


_PARAMETERS = (
    *write_times("force_ms"),
    Parameter("force_ms[untold]", "ms", 1.3, 1.0, "judged: midway between flash and a plain disk"),
    # publications
    Parameter("publication_ms", "ms", 0.3, 0.7, "judged: a round trip with both ends in Python"),
    Parameter("delivery_ms", "ms", 0.03, 0.7, "judged: a message taken by a subscriber, in Python"),
    Parameter("publication_ms_per_kb", "ms/KB", 0.005, 0.7, _COPY),
    Parameter("delivery_ms_per_kb", "ms/KB", 0.002, 0.7, "judged: two copies at 1 GB/s"),
    Parameter("idle_ms", "ms", 1e-5, 0.7, "judged: subscriptions are found by hashing: nearly nothing"),
    Parameter("matched", "", 1.5, 0.5, "judged: conditions are looked at one after the other"),
    Parameter("correlated", "", 1.0, 0.5, "no difference expected between a queue and many"),
    Parameter("persistent_delivery", "", 2.0, 0.5, "judged: acknowledging costs as much as taking"),
    Parameter("publication_forces", "", 1.0, 0.5, "a publication is stored once"),
    Parameter("delivery_forces", "", 0.2, 1.0, "judged: copies are stored, most of them together"),
    Parameter("correlated_forces", "", 0.2, 1.0, "judged: puts of one unit of work are stored together"),
    # flows
    Parameter("driver_ms", "ms", 0.1, 0.7, _CALL),
    Parameter("broker_ms", "ms", 0.1, 0.7, "judged: a call of 300,000 instructions at 3 GHz"),
    Parameter("persistent_broker", "", 2.0, 0.5, "judged: storing costs as much as passing on"),
    Parameter("transport_ms", "ms", 0.2, 0.7, "judged: taking and putting a message, in Python"),
    Parameter("transport_ms_per_kb", "ms/KB", 0.005, 0.7, _COPY),
    *_each("node_ms", _NODES, 0.1, _CALL),
    *_each("program_ms", _PROGRAMS, 0.1, _CALL),
    *_each("parse_ms", _FORMATS, 0.15, _FIELDS),
    *_each("write_ms", _FORMATS, 0.15, _FIELDS),
    *_each("database_ms", _OPERATIONS, 0.3, "judged: a statement, its commit forced"),
    Parameter("format_ms_per_kb", "ms/KB", 0.01, 0.7, _COPY),
    Parameter("destination_ms", "ms", 0.002, 0.7, "judged: a field made"),
    Parameter("copy_ms", "ms", 0.1, 0.7, _FIELDS),
    Parameter("subscriber_ms", "ms", 0.05, 0.7, "judged: a delivery, taken by the driver"),
    Parameter("condition_ms", "ms", 0.005, 0.7, "judged: a field looked up and compared"),
    Parameter("round_trip_ms", "ms", 0.2, 0.7, "judged: what a thread waits for the broker's word"),
    Parameter("flow_forces", "", 1.0, 0.5, "a put is forced once"),
    Parameter("commit_sharing", "", 0.5, 1.0, "judged: between all of a unit of work and each message"),
    Parameter("group_commit", "", 0.3, 1.0, "judged: few of those that wait go out together"),
    Parameter("interpreter", "", 1.0, 0.3, "threads of one process compute in turn"),
)  # fmt: skip

_PRODUCT = ("product",)
_EFFECTS = (
    Effect(
        "product_time", ("publication_ms", "round_trip_ms"), _PRODUCT, 0.5, "judged: a hop more, or one less"
    ),
    Effect("product_delivery", ("delivery_ms",), _PRODUCT, 0.5, "judged: clients of other make"),
    Effect("product_forces", ("publication_forces", "flow_forces"), _PRODUCT, 0.5, "judged: not all force"),
    Effect("product_sharing", ("delivery_forces", "correlated_forces"), _PRODUCT, 1.0, "judged"),
    Effect("product_group", ("group_commit",), _PRODUCT, 0.7, "judged: some have none"),
    Effect("product_cpu", ("broker_ms", "driver_ms", "transport_ms"), _PRODUCT, 0.5, "judged: as calls are"),
    Effect(
        "machine_cpu", ("publication_ms", "driver_ms", "broker_ms", "transport_ms"), MACHINE, 0.35,
        "as far as a clock tells a machine, see ratings.yaml", between_machines=True,
    ),
    Effect("machine_disk", ("force_ms",), MACHINE, 0.5, "judged: as disks of a kind differ"),
)  # fmt: skip


def _evaluate(batch: Batch, demands: Demands) -> Evaluation:
    factors = {one.name: one.factors(batch, demands) for one in _EFFECTS}
    force_ms = factors["machine_disk"] * demands.by(
        "force_ms", batch, "log_disk", absent=demands["force_ms[untold]"]
    )
    published = _publication(batch, demands, factors, force_ms)
    flow = _Flow(batch, demands, factors)
    where = batch.is_("family", "live_publication")
    threads, units = flow.threads, batch.number("messages_per_commit", absent=1.0)
    persistent = batch.flag("persistent")
    # who waits for the disk: every thread's unit of work, and those of the driver among them
    forced = np.where(persistent, demands["flow_forces"] * factors["product_forces"], 0.0)
    forced = forced * units ** -np.minimum(demands["commit_sharing"], 1.0)
    waiting = np.minimum(threads, batch.number("window", absent=1.0))
    sharing = np.minimum(demands["group_commit"] * factors["product_group"], 1.0)
    together = np.maximum(waiting, 1.0) ** sharing
    trips = demands["round_trip_ms"] * factors["product_time"] / units
    held = flow.worker_ms + flow.database_ms + trips + forced * force_ms
    nothing = np.zeros(batch.size)
    network = Network(
        [
            serial("publication", np.where(where, published, 0.0) * _MS),
            cpu(np.where(where, 0.0, flow.worker_ms + flow.broker_ms) * _MS, batch.number("cpus"),
                np.where(where, 0.0, flow.driver_ms) * _MS),
            log(np.where(where, 0.0, forced * force_ms) * _MS, np.where(where, 1.0, together)),
            delay("broker's word", np.where(where, 0.0, trips * np.maximum(units, 1.0)) * _MS),
            # ceilings: threads that are held, interpreters that compute
            Station("threads", "serial", nothing, np.where(where, 0.0, held) * _MS, threads),
            Station("interpreters", "serial", nothing,
                    np.where(where, 0.0, flow.worker_ms * demands["interpreter"]) * _MS, flow.processes),
        ],
        population=np.where(where, 1.0, batch.number("window", absent=1.0)),
        customers="messages under way",
    )  # fmt: skip
    work = np.where(where, np.nan, flow.worker_ms + flow.broker_ms + flow.driver_ms)
    found = evaluated(network, batch, cpu_ms_per_msg=work)
    return Evaluation({**found.metrics, "cpu_busy_pct": np.full(batch.size, np.nan)}, found.solution)


def _publication(batch: Batch, demands: Demands, factors: dict[str, Array], force_ms: Array) -> Array:
    """Milliseconds from making one until the last subscriber has it."""
    subscribers, kb = batch.number("subscribers", absent=1.0), batch.number("message_bytes") / 1024
    persistent = batch.flag("persistent")
    shared = batch.is_("subscriber_queues", "shared")
    delivery = demands["delivery_ms"] * factors["product_delivery"] + demands["delivery_ms_per_kb"] * kb
    delivery = delivery * np.where(persistent, demands["persistent_delivery"], 1.0)
    delivery = delivery * np.where(shared, demands["correlated"], 1.0)
    delivery = delivery * np.where(batch.is_("routing", "content"), demands["matched"], 1.0)
    publication = demands["publication_ms"] * factors["product_time"] + demands["publication_ms_per_kb"] * kb
    idle = demands["idle_ms"] * batch.number("idle_subscribers", absent=0.0)
    copies = np.where(shared, demands["correlated_forces"], demands["delivery_forces"])
    forces = demands["publication_forces"] * factors["product_forces"]
    forces = forces + copies * factors["product_sharing"] * (subscribers - 1)
    processor = factors["machine_cpu"] * batch.cpu_ratio * (publication + subscribers * delivery + idle)
    total: Array = processor + np.where(persistent, forces * force_ms, 0.0)
    return total


class _Flow:
    """What a message of a flow costs, in milliseconds."""

    def __init__(self, batch: Batch, demands: Demands, factors: dict[str, Array]) -> None:
        kb = batch.number("message_bytes") / 1024
        ratio = factors["machine_cpu"] * batch.cpu_ratio
        calls = factors["product_cpu"] * ratio
        subscribers = batch.number("subscribers", absent=1.0)
        copies = np.where(batch.is_("family", "live_flow"), subscribers, 1.0)
        self.processes = batch.number("queues", absent=1.0) * batch.number("execution_groups", absent=1.0)
        self.threads = self.processes * batch.number("instances", absent=1.0)
        brokers = batch.number("brokers", absent=1.0)
        stored = np.where(batch.flag("persistent"), demands["persistent_broker"], 1.0)
        self.broker_ms = calls * demands["broker_ms"] * stored * (1 + brokers) / 2
        delivered = demands["subscriber_ms"] * (copies - 1)
        self.driver_ms = calls * demands["driver_ms"] + ratio * delivered
        transport = demands["transport_ms"] + demands["transport_ms_per_kb"] * kb
        self.worker_ms = calls * transport + ratio * self._node_ms(batch, demands, kb, copies)
        # a commit is waited for, not computed
        self.database_ms = demands.by("database_ms", batch, "database_operation")

    def _node_ms(self, batch: Batch, demands: Demands, kb: Array, copies: Array) -> Array:
        repeats = batch.number("compute_nodes", absent=0.0) * batch.number("program_repeats", absent=1.0)
        formats = (~batch.is_("input_format", "none", "None")).astype(float)
        formats = formats + ~batch.is_("output_format", "none", "None")
        total: Array = (
            demands.by("node_ms", batch, "node")
            + demands.by("program_ms", batch, "esql") * repeats
            + demands.by("parse_ms", batch, "input_format")
            + demands.by("write_ms", batch, "output_format")
            + demands["format_ms_per_kb"] * kb * formats
            + demands["copy_ms"] * batch.number("copy_nodes", absent=0.0)
            + demands["destination_ms"] * batch.number("destinations", absent=0.0)
            + demands["condition_ms"] * np.where(batch.is_("routing", "content"), copies, 0.0)
        )
        return total


def _regimes(batch: Batch) -> Texts:
    kind = np.where(batch.is_("family", "live_publication"), "publication", "flow").astype(object)
    found: Texts = kind + np.where(batch.flag("persistent"), ", persistent", ", non-persistent")
    return found


_REFUSALS = (
    Refusal(
        "input_format: the worker does not read {input_format}",
        lambda batch: batch.is_("input_format", "swift_mt543") | batch.is_("output_format", "swift_mt543"),
    ),
)

SYSTEM = System(
    name="live",
    title="Publications and flows on a live broker",
    families=("live_publication", "live_flow"),
    # judged: what short runs on a busy machine differ by
    targets=(Target("throughput_msgs_per_s", 0.05), Target("cpu_ms_per_msg", 0.10)),
    parameters=(*_PARAMETERS, *(one for effect in _EFFECTS for one in effect.of_another)),
    effects=_EFFECTS,
    evaluate=_evaluate,
    refusals=_REFUSALS,
    regimes=_regimes,
    reach={"idle_subscribers": 100},
)
