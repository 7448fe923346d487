"""Messages through queues: requests and their replies, and messages from producers to consumers.

Everything is made of operations: a put or a get, which costs processor time, a crossing of the network each
way and, if the message is persistent, a forced write of the log. A round trip is four operations and two
messages, whose requester waits for all of it; there are always enough responders. A delivery is two
operations and one message, and nobody waits for both: a producer waits for its put alone, as far as its
window makes it, and a consumer for its get, as far as its prefetch does. Put and get go at one rate and share
processors and log evenly, so the half with fewer messages under way decides.

Messages that travel together on a connection share its reads and writes, and those of a unit of work its
commit: both make an operation cheaper than one that comes alone.

Products and machines differ: factors that rows tell of a product, or of a machine, are fitted around 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twin.core.columns import Texts
from twin.queueing.network import Array, Flags, Network, Station, cpu, delay, log, pipe
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
_BITS_PER_BYTE = 8
# Request put and got, reply put and got. Each of the two messages is written to the log once and crosses the
# network in both directions; each of the two queues has a put and a get.
_OPERATIONS = 4
_MESSAGES = 2
_AT_A_QUEUE = 2
# Messages under way of producers that wait for none and of consumers that take any number: with four stations
# as slow as each other so many go at 99% of the highest rate, and one that is slower than the others needs
# fewer
_ENOUGH = 300

_PARAMETERS = (
    Parameter(
        "operation_cpu", "ms", 0.1, 0.7,
        "judged: a call with its sends and receives, 300,000 instructions at 3 GHz",
    ),
    Parameter("cpu_per_kb", "ms/KB", 0.005, 0.6, "judged: five copies at 1 GB/s, encryption among them"),
    Parameter("persistent_cpu", "", 1.5, 0.3, "judged: building log records adds half of a call"),
    # beside what an operation costs in any case
    Parameter("reading", "", 1.0, 0.6, "judged: a wake-up and two system calls cost as much as the rest"),
    Parameter("committing", "", 1.0, 0.6, "judged: the answer to a unit of work is a message like another"),
    Parameter("travelling", "", 0.7, 0.2, "judged: not all that is under way arrives at once"),
    Parameter("apart", "", 0.5, 0.3, "judged: a program that looks at many connections finds several ready"),
    Parameter("fetch", "", 1.0, 0.5, "no difference expected between a put's way and a get's"),
    *write_times("force_ms"),
    Parameter("force_ms[untold]", "ms", 1.3, 1.0, "judged: midway between flash and a plain disk"),
    Parameter("forces", "", 1, 0.3, "judged: each operation forces the log for itself"),
    # against the one of its unit of work
    Parameter("own_forces", "", 0.1, 0.6, "judged: a unit of work is forced once, few messages alone"),
    Parameter("group_commit", "", 0.5, 0.5, "judged: as many commits as the root of the messages under way"),
    Parameter("log_per_kb", "ms/KB", 0.01, 0.6, "judged: flash takes 100 MB/s in blocks of some KB"),
    Parameter("lock", "ms", 0.01, 0.6, "judged: a queue takes 100,000 operations a second, one at a time"),
    Parameter(
        "delay", "ms", 0.125, 0.6,
        "judged: two crossings of a local network at 50 us, and the programs' own work",
    ),
)  # fmt: skip

_PRODUCT = ("product",)
_EFFECTS = (
    Effect("product_cpu", ("operation_cpu",), _PRODUCT, 0.6, "judged: a call may cost twice another's"),
    Effect("product_cpu_per_kb", ("cpu_per_kb",), _PRODUCT, 0.5, "judged: a copy more, or one less"),
    Effect("product_delay", ("delay",), _PRODUCT, 0.5, "judged: a crossing more, or one less"),
    Effect("product_forces", ("forces",), _PRODUCT, 0.5, "judged: not every operation need be forced"),
    Effect(
        "product_own", ("own_forces",), _PRODUCT, 0.65, "judged: some force each message of a unit of work"
    ),
    Effect("product_group", ("group_commit",), _PRODUCT, 0.6, "judged: some let no commit wait for another"),
    Effect("product_reading", ("reading",), _PRODUCT, 0.5, "judged: clients of other make"),
    Effect("product_committing", ("committing",), _PRODUCT, 0.5, "judged: clients of other make"),
    Effect("product_travelling", ("travelling",), _PRODUCT, 0.2, "judged: clients of other make"),
    Effect("product_fetch", ("fetch",), _PRODUCT, 0.5, "judged: a request for each message, or for many"),
    Effect("product_lock", ("lock",), _PRODUCT, 0.6, "judged: a queue may be a thread, a lock or neither"),
    Effect(
        "machine_cpu", ("operation_cpu", "cpu_per_kb", "lock"), MACHINE, 0.35,
        "as far as a clock tells a machine, see ratings.yaml", between_machines=True,
    ),
    Effect("machine_disk", ("force_ms", "log_per_kb"), MACHINE, 0.5, "judged: as disks of a kind differ"),
    Effect("machine_delay", ("delay",), MACHINE, 0.4, "judged: switches and drivers, half or twice as quick"),
)  # fmt: skip


def _evaluate(batch: Batch, demands: Demands) -> Evaluation:
    factors = {one.name: one.factors(batch, demands) for one in _EFFECTS}
    persistent = batch.flag("persistent")
    round_trip = batch.is_("family", "request_reply")
    per_commit = batch.number("messages_per_commit", absent=1.0)
    under_way, halves = _UnderWay.of(batch, per_commit), np.where(round_trip, 1, _halves(batch))
    # a unit of work that is under way as a whole goes round as one
    population = under_way.population / under_way.at_once
    # what a customer waits for
    operations = np.where(round_trip, _OPERATIONS, 1)
    messages = np.where(round_trip, _MESSAGES, 1)
    kb = batch.number("message_bytes") / 1024
    work = demands["operation_cpu"] * factors["product_cpu"]
    work = work * _alone(under_way, demands, factors, per_commit)
    work = work + demands["cpu_per_kb"] * factors["product_cpu_per_kb"] * kb
    work = work * operations * np.where(persistent, demands["persistent_cpu"], 1.0)
    work = work * factors["machine_cpu"] * batch.cpu_ratio
    own = demands["own_forces"] * factors["product_own"]
    forces = operations * demands["forces"] * factors["product_forces"] * (own + 1 / per_commit) / (own + 1)
    force_ms = factors["machine_disk"] * demands.by(
        "force_ms", batch, "log_disk", absent=demands["force_ms[untold]"]
    )
    # commits that wait for a force go out together, of either half
    grouped = np.minimum(demands["group_commit"] * factors["product_group"], 1.0)
    together = np.maximum(under_way.population / per_commit, 1.0) ** grouped / halves
    # a get only marks a message as gone, its bytes are in the log already
    logged_kb = np.where(persistent & (batch.number("producers", absent=1.0) > 0), messages * kb, 0.0)
    transfer_ms = factors["machine_disk"] * demands["log_per_kb"] * logged_kb
    at_a_queue = np.where(round_trip, _AT_A_QUEUE, halves)
    lock_ms = factors["product_lock"] * factors["machine_cpu"] * batch.cpu_ratio * demands["lock"]
    bytes_per_s = batch.number("network_mbps", absent=np.inf) * 1e6 / _BITS_PER_BYTE
    delay_ms = factors["product_delay"] * factors["machine_delay"] * batch.network_ratio * demands["delay"]
    # where consumers hold back, it is their way that is waited for
    fetched = demands["fetch"] * factors["product_fetch"]
    delay_ms = delay_ms * np.where(_fetching(batch, under_way.population), fetched, 1.0) / under_way.at_once
    network = Network(
        stations=[
            cpu(work * _MS, batch.number("cpus") / halves),
            log(
                np.where(persistent, forces * force_ms, 0.0) * _MS,
                np.where(persistent, np.maximum(together, 1.0), 1.0),
            ),
            # commits share a force, but every byte has to be written: a ceiling
            Station("log transfer", "disk", 0.0, transfer_ms * _MS),
            # and so is a queue, from which messages are got one after the other
            Station("queue", "serial", 0.0, lock_ms * at_a_queue * _MS, batch.number("queues", absent=1.0)),
            pipe(messages * batch.number("message_bytes"), bytes_per_s),
            delay("network and clients", operations * delay_ms * _MS),
        ],
        population=population,
        customers="messages under way",
    )
    return evaluated(network, batch, cpu_ms_per_msg=work * halves)


@dataclass(frozen=True)
class _UnderWay:
    """Messages of the half that decides: how many, of how many programs, and what of them keeps together."""

    population: Array
    # messages of one unit of work that are under way at a time: they wait for one answer
    at_once: Array
    # connections that they are spread over; not a number where each has its own
    connections: Array

    @classmethod
    def of(cls, batch: Batch, per_commit: Array) -> _UnderWay:
        population = _population(batch)
        programs = np.where(
            _fetching(batch, population), batch.number("consumers"), batch.number("producers")
        )
        programs = np.where(programs > 0, programs, batch.number("consumers"))
        # both halves use them
        connections = np.fmin(batch.number("connections"), programs)
        # requesters have one request under way each, on a connection of their own
        of_one = np.nan_to_num(population / np.maximum(programs, 1.0), nan=1.0)
        return cls(population, np.clip(of_one, 1.0, per_commit), connections)


def _alone(under_way: _UnderWay, demands: Demands, factors: dict[str, Array], per_commit: Array) -> Array:
    """The work of an operation, against one that comes alone. What is under way arrives in groups, as many
    messages as its power of `travelling`, and each group is read once; connections break groups up."""
    reading = demands["reading"] * factors["product_reading"]
    committing = demands["committing"] * factors["product_committing"]
    together = np.nan_to_num(under_way.population / under_way.connections ** demands["apart"], nan=1.0)
    group = np.maximum(together, 1.0) ** np.minimum(
        demands["travelling"] * factors["product_travelling"], 1.0
    )
    read, committed = (1 + reading / group) / (1 + reading), (1 + committing / per_commit) / (1 + committing)
    found: Array = read * committed
    return found


def _fetching(batch: Batch, population: Array) -> Flags:
    """Where consumers hold fewer messages than producers have under way."""
    held = batch.number("consumers") * batch.number("prefetch")
    fewer: Flags = (held > 0) & (held <= population)
    return fewer


def _halves(batch: Batch) -> Array:
    """Put and get, or the one of them that takes place."""
    there: Array = (batch.number("producers") > 0).astype(float) + (batch.number("consumers") > 0)
    return there


def _population(batch: Batch) -> Array:
    """A request of each requester, or messages without replies."""
    columns = ("producers", "window", "consumers", "prefetch")
    messages = under_way(*(batch.number(name) for name in columns))
    found: Array = np.where(batch.is_("family", "request_reply"), batch.number("clients"), messages)
    return found


def under_way(producers: Array, window: Array, consumers: Array, prefetch: Array) -> Array:
    """Messages between producers and consumers at a time, in the half that has fewer; what is not a number
    was not told. Nobody at all is not a number."""
    fewest: Array = np.fmin(_of_one_half(producers, window), _of_one_half(consumers, prefetch))
    return fewest


def _of_one_half(programs: Array, each: Array) -> Array:
    some = np.where(np.isnan(each), np.maximum(programs, _ENOUGH), programs * each)
    return np.where(programs > 0, some, np.nan)


def _regimes(batch: Batch) -> Texts:
    return np.where(batch.flag("persistent"), "persistent", "non-persistent").astype(object)


_REFUSALS = (
    Refusal(
        "producers: nobody sends and nobody receives",
        lambda batch: (batch.number("producers") == 0) & (batch.number("consumers") == 0),
    ),
)

SYSTEM = System(
    name="messaging",
    title="Messages, or requests and replies, through queues",
    families=("request_reply", "point_to_point"),
    # judged: what runs of a harness on a machine of one's own differ by
    targets=(Target("throughput_msgs_per_s", 0.05), Target("cpu_busy_pct", 2.0, scale="points")),
    parameters=(*_PARAMETERS, *(one for effect in _EFFECTS for one in effect.of_another)),
    effects=_EFFECTS,
    evaluate=_evaluate,
    refusals=_REFUSALS,
    regimes=_regimes,
)
