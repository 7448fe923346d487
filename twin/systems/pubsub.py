"""Publish and subscribe on one machine: fan-out to subscribers, a loop through two brokers, a bank.

One message is in flight at a time, so its elapsed time is the sum of what it waits for: the broker's thread,
the channels, forced writes of the log and the files of queues that do not fit into memory. The queue managers
of all experiments run on the one machine, so channels cost processor time and no link is between them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from twin.core.columns import Texts
from twin.queueing.network import Array, Flags, Network, Quantity, disk, log, serial
from twin.systems.model import Batch, Demands, Evaluation, Refusal, System, Target, printed_constants
from twin.systems.pubsub_parameters import PARAMETERS
from twin.systems.standard import evaluated

_PRINTED = printed_constants("pubsub")
# the publisher's put and the broker's commit
_PUBLICATION_FORCES = 2


@dataclass(frozen=True)
class _Work:
    """What a message waits for."""

    broker_ms: Array
    channels_ms: Array
    log_ms: Array
    files_ms: Array


@dataclass(frozen=True)
class _Traffic:
    """Configurations with what all three experiments need of them."""

    batch: Batch
    demands: Demands

    @cached_property
    def persistent(self) -> Flags:
        return self.batch.flag("persistent")

    @cached_property
    def in_syncpoint(self) -> Flags:
        """Persistent messages always are; the broker's option lets the others out."""
        return self.persistent | ~self.batch.flag("syncpoint_if_persistent")

    @cached_property
    def genuine(self) -> Flags:
        """The bank ran the product."""
        simulated = self.batch.is_("broker", "simulated") | self.batch.is_("path", "simulated", "channel")
        return ~simulated

    @cached_property
    def kb(self) -> Array:
        return self.batch.number("message_bytes") / 1024

    @cached_property
    def moved_kb(self) -> Array:
        """As far as time is concerned: large blocks may move cheaper than small ones."""
        moved: Array = self.kb ** self.demands["size_exponent"]
        return moved

    @cached_property
    def force_ms(self) -> Array:
        """Where the log's disk is not told it is of the measured kind."""
        return self.demands.by("force_ms", self.batch, "log_disk", absent=self.demands["force_ms[ssa]"])

    @cached_property
    def logged_ms(self) -> Array:
        """A message's own bytes on their way to the log."""
        return self.demands["logged_ms_per_kb"] * self.moved_kb

    def spill_ms(self, waiting: Array) -> Array:
        """Per message: non-persistent messages that wait beyond the queue's buffer go through its file."""
        buffer_kb = self.demands["buffer_kb"]
        each_kb = self.kb + self.demands["header_kb"]
        beyond_kb = _above(waiting * each_kb, buffer_kb, self.demands["rounding"] * buffer_kb) / waiting
        price = np.where(self.in_syncpoint, 1.0, self.demands["spill_outside_syncpoint"])
        return np.where(self.persistent, 0.0, beyond_kb * self.demands["spill_ms_per_kb"] * price)

    def hop_ms(self, batches: Array) -> Array:
        """One broker takes a message from its stream and puts it to the next; a batch wakes it once."""
        demands = self.demands
        wakes = np.where(self.in_syncpoint, demands["hop_wake_in_syncpoint"], 1.0) * batches
        commit = np.where(self.in_syncpoint, demands["hop_commit"] * demands["commit_ms"], 0.0)
        outside = np.where(self.in_syncpoint, 1.0, demands["genuine_hop_outside_syncpoint"])
        calls = demands["hop_ms"] + demands["hop_wake_ms"] * wakes + commit
        copies = demands["hop_copy"] * demands["delivery_ms_per_kb"] * self.moved_kb
        return np.where(
            self.genuine,
            calls * demands["genuine_hop"] * outside + copies * demands["genuine_hop_copy"],
            calls + copies,
        )


def _above(value: Array, knee: Quantity, rounding: Quantity) -> Array:
    """What exceeds the knee, which is rounded: not every queue reaches it at the same moment."""
    return rounding * np.logaddexp(0.0, (value - knee) / rounding)


def _fan_out(traffic: _Traffic) -> _Work:
    batch, demands = traffic.batch, traffic.demands
    subscribers = batch.number("subscribers", absent=1.0)
    publications = batch.number("publications", absent=1.0)
    own = batch.is_("subscriber_queues", "own")
    missing = np.where(own, (subscribers - 1) * _cache_misses(subscribers, demands), 0.0)
    # the broker is at the next publication while the application still makes others
    publication = (
        demands["publication_ms"]
        + demands["application_ms"] / publications
        + np.where(traffic.in_syncpoint, demands["commit_ms"], 0.0)
        + np.where(traffic.genuine, demands["match_ms"], 0.0)
    )
    delivery = demands["delivery_ms"] + demands["delivery_ms_per_kb"] * traffic.moved_kb
    deliveries = subscribers * delivery * np.where(traffic.genuine, demands["genuine_delivery"], 1.0)
    # a unit of work shows nothing to readers until its end; publications that nobody reads yet pile up
    piled = np.where(traffic.in_syncpoint | (publications > 1), publications, demands["backlog_share"])
    spilled = subscribers * traffic.spill_ms(subscribers * piled)
    forces = (_PUBLICATION_FORCES + subscribers) * traffic.force_ms
    logged = (demands["publication_logged"] + subscribers) * traffic.logged_ms
    return _Work(
        broker_ms=batch.cpu_ratio * (publication + deliveries + missing * demands["reopen_ms"]),
        channels_ms=np.zeros(batch.size),
        log_ms=np.where(traffic.persistent, forces + logged, 0.0),
        files_ms=np.where(own, _own_files_ms(traffic, subscribers, missing), spilled),
    )


def _cache_misses(queues: Array, demands: Demands) -> Array:
    """Share of deliveries that find their queue closed: none while all fit, all a span further on."""
    handles = _PRINTED["open_cache_handles"]
    span = demands["cache_span"] * handles
    rounding = demands["rounding"] * handles
    return (_above(queues, handles, rounding) - _above(queues, handles + span, rounding)) / span


def _own_files_ms(traffic: _Traffic, queues: Array, missing: Array) -> Array:
    """Every further queue has a file to be written, and more of it whenever the queue is closed. The more
    files there are to write, the shorter the way from one to the next."""
    demands = traffic.demands
    written = demands["own_queue_ms_per_kb"] * traffic.moved_kb * queues ** -demands["own_queue_gain"]
    flushed = demands["reopen_ms_per_kb"] * traffic.moved_kb
    return (queues - 1) * (demands["own_queue_ms"] + written) + missing * flushed


def _loopback(traffic: _Traffic) -> _Work:
    batch, demands = traffic.batch, traffic.demands
    messages = batch.number("batch_size", absent=1.0)
    brokers = np.where(batch.is_("path", "channel"), 0.0, _PRINTED["loop_brokers"])
    # brokers that wait for their log feed a channel so slowly that it closes its batch before it is full
    fill = np.where(traffic.persistent & (brokers > 0), demands["batch_fill"], 1.0)
    batches = 1 / (1 + fill * (messages - 1))
    # the application's own two units of work, one to put and one to get, hold a whole batch
    commits = np.where(traffic.in_syncpoint, 2 * demands["commit_ms"], 0.0)
    channels = (
        demands["channel_ms"]
        + demands["channel_ms_per_kb"] * traffic.moved_kb
        + (demands["channel_batch_ms"] + commits) * batches
    )
    queues = _PRINTED["loop_queues"]
    ends = _PRINTED["loop_channel_ends"]
    forces = demands["channel_forces"] + brokers + ends * demands["end_forces"] * batches
    logged = (
        queues * demands["channel_logged"]
        + brokers * demands["hop_logged"]
        + demands["publication_logged"] * batches
    )
    return _Work(
        broker_ms=batch.cpu_ratio * brokers * traffic.hop_ms(batches),
        channels_ms=batch.cpu_ratio * channels,
        log_ms=np.where(traffic.persistent, forces * traffic.force_ms + logged * traffic.logged_ms, 0.0),
        files_ms=queues * demands["channel_spill"] * traffic.spill_ms(messages),
    )


def _bank(traffic: _Traffic) -> _Work:
    """The broker alone: it lags first. Its queue files lie on a disk that every message has to reach."""
    batch, demands = traffic.batch, traffic.demands
    subscribers = batch.number("subscribers", absent=1.0)
    batches = 1 / batch.number("batch_size", absent=1.0)
    # one channel comes from the publisher, one goes to each subscriber
    forces = 1 + (1 + subscribers) * demands["end_forces"] * batches
    force_ms = demands["dedicated_force"] * traffic.force_ms
    written = demands["file_ms"] + subscribers * demands["file_written"] * traffic.logged_ms
    return _Work(
        broker_ms=batch.cpu_ratio * (traffic.hop_ms(batches) + (subscribers - 1) * demands["delivery_ms"]),
        channels_ms=np.zeros(batch.size),
        log_ms=np.where(traffic.persistent, forces * force_ms, 0.0),
        files_ms=np.where(traffic.persistent, written, 0.0),
    )


def _evaluate(batch: Batch, demands: Demands) -> Evaluation:
    traffic = _Traffic(batch, demands)
    experiments = {"fan_out": _fan_out, "loopback": _loopback, "bank": _bank}
    where = [batch.is_("family", family) for family in experiments]
    works = [work_of(traffic) for work_of in experiments.values()]

    def seconds(parts_ms: Iterable[Array]) -> Array:
        chosen: Array = np.select(where, list(parts_ms)) / 1000
        return chosen

    network = Network(
        [
            serial("broker", seconds(work.broker_ms for work in works)),
            serial("channels", seconds(work.channels_ms for work in works)),
            log(seconds(work.log_ms for work in works)),
            disk(seconds(work.files_ms for work in works), name="queue files"),
        ],
        population=1.0,
        customers="messages in flight",
    )
    evaluation = evaluated(network, batch)
    solution = evaluation.solution
    assert solution is not None
    files_busy_pct = solution.utilisation[-1] * 100
    return Evaluation(
        {
            **evaluation.metrics,
            "elapsed_ms": solution.residence.sum(axis=0) * 1000,
            "disk_busy_pct": np.where(batch.is_("family", "bank"), files_busy_pct, np.nan),
        },
        solution,
    )


_REFUSALS = (
    Refusal(
        "subscriber_queues: own queues were measured with non-persistent messages only",
        lambda batch: batch.is_("subscriber_queues", "own") & batch.flag("persistent"),
    ),
    Refusal(
        "persistent: the bank's scenario was measured with persistent messages only",
        lambda batch: batch.is_("family", "bank") & ~batch.flag("persistent"),
    ),
)


_PARTS = ("bank", "fan-out, own queues", "idle subscribers")


def _regimes(batch: Batch) -> Texts:
    loop = np.array([f"loop-back {path}" for path in batch.columns.texts("path")], dtype=object)
    found: Texts = np.select(
        [
            batch.is_("family", "loopback"),
            batch.is_("family", "bank"),
            batch.is_("subscriber_queues", "own"),
            batch.number("idle_subscribers") > 0,
        ],
        [loop, *(np.full(batch.size, name, object) for name in _PARTS)],
        "fan-out, shared queue",
    )
    return found


SYSTEM = System(
    name="pubsub",
    title="MQSeries Publish/Subscribe on AIX",
    families=("fan_out", "loopback", "bank"),
    # repeats lie 3.2 to 3.7% apart; the disk's use is a rough figure of the text
    targets=(
        Target("elapsed_ms", 0.035),
        Target("throughput_msgs_per_s", 0.035),
        Target("disk_busy_pct", 5, "points"),
    ),
    parameters=PARAMETERS,
    evaluate=_evaluate,
    refusals=_REFUSALS,
    regimes=_regimes,
    # subscriptions are found by hashing (line 208), bytes are copied and written, batches only ever amortise
    reach={"idle_subscribers": 10_000, "batch_size": 10, "message_bytes": 16},
)
