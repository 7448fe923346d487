"""Rules engines of several queue managers on one box, as measured with MQSeries Integrator V1.1 on Solaris.

The engines circulate between processors and logs. Part of the processor work is done by queue managers and
driver programs beside the engines, so a message takes more processor time than its engine's cycle lasts.
Engines that wait for a disk keep polling, and that takes processors from those that could work.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
from scipy.optimize import elementwise
from scipy.special import gammaln

from twin.core.columns import Texts
from twin.core.configuration import Configuration
from twin.queueing.network import Array, Locks, Network, Station, cpu, delay
from twin.queueing.solving import solve
from twin.simulation.failover import fail_over
from twin.simulation.playing import model_of
from twin.simulation.transient import Course, Scenario, Transient
from twin.systems.model import (
    Batch,
    Demands,
    Evaluation,
    Fitted,
    Parameter,
    Refusal,
    System,
    Target,
    printed_constants,
    write_times,
)
from twin.systems.standard import evaluated

_MS = 1e-3
# the share of what a box can do for both when one of them fails, where no load is told
_TAKEN_OVER = 0.8
_STRIPE_DISKS = printed_constants("hub")["stripe_disks"]

_PARAMETERS = (
    Parameter(
        "engine_cpu", "ms", 6, 0.5,
        "get, rules, reformat, put and commit: some millions of instructions at 400 MHz",
    ),
    Parameter(
        "beside_cpu", "ms", 6, 0.5,
        "the queue manager takes most of what the engines leave (mqsi-v11-solaris line 286): about as much",
    ),
    Parameter("cpu_per_kb", "ms", 0.2, 0.5, "tens of cycles for each byte copied and reformatted at 400 MHz"),
    Parameter("log_lock", "ms", 2, 0.7, "log records are built under the lock: a part of the work beside"),
    Parameter("log_per_kb", "ms", 0.1, 0.5, "drives of that time write some 10 MB/s"),
    *write_times("log_write"),
    Parameter(
        "stripe_width", "disks", _STRIPE_DISKS - 1, 0.5,
        "logs are striped over three disks (mqsi-v11-solaris line 254): those beside the first",
    ),
    Parameter("handover", "", 0.1, 0.7, "a lock that others wait for is taken later than it is released"),
    Parameter("polling", "processors", 0.2, 0.7, "a waiting engine is awake for a small part of the time"),
    Parameter("wake_up", "ms", 10, 0.5, "who finds the processor taken waits for a clock tick, 10 ms"),
    Parameter("processes", "", 2, 0.5, "busy processes of a queue manager: its engine and its agent"),
    Parameter("cold_cache", "", 0.1, 0.7, "work is slower where another queue manager was served before"),
    Parameter("rival_engine", "", 0.1, 0.7, "engines on one queue find messages locked and try again"),
    Parameter("fail_over_cpu", "", 1, 0.1, "no effect expected; no messages go between the boxes then"),
    Parameter(
        "writes", "", 4, 0.2,
        "a message is put twice and each put writes to log and queue (mqsi-v11-solaris line 258)",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class _Box:
    """What a message takes on a box (times in seconds), and what there is of it."""

    engines: Array
    processors: Array
    engine_cpu: Array
    beside_cpu: Array
    wake_up: Array
    log_hold: Array
    logs: Array
    # what the two stand for
    queue_managers: Array
    lock_hold: Array
    log_disks: Array
    queue_write: Array
    queue_disks: Array
    # processors that an engine takes while it waits for a disk
    awake: Array

    def only(self, rows: npt.NDArray[np.int64]) -> _Box:
        return _Box(*(getattr(self, field.name)[rows] for field in fields(self)))

    @property
    def log(self) -> Station:
        """Each queue manager has a log of its own, and a lock on it."""
        locks = Locks(self.queue_managers, self.lock_hold, self.log_disks)
        return Station("log", "log", self.log_hold, servers=self.logs, locks=locks)

    def engines_alone(self, processors: Array) -> Network:
        """What the engines do with the processors that the others leave to them."""
        stations = (
            cpu(self.engine_cpu, processors),
            self.log,
            delay("wake-up", self.wake_up),
        )
        return Network(stations, self.engines)

    def whole(self, polling: Array) -> Network:
        stations = (
            cpu(self.engine_cpu, self.processors, self.beside_cpu + polling),
            self.log,
            delay("wake-up", self.wake_up),
            # queues are written behind the engines: nobody waits for it until the disks have no time left
            Station("queue disks", "disk", 0.0, self.queue_write, self.queue_disks),
        )
        return Network(stations, self.engines, "rules engines")


def evaluate(batch: Batch, demands: Demands) -> Evaluation:
    write = _write_time(batch, demands)
    found = evaluated(_box_network(batch, demands, write), batch)
    rate, idle = found.metrics["throughput_msgs_per_s"], found.metrics["cpu_idle_pct"]
    # an idle processor waits for a disk while any write is under way; they start at random
    any_write = -np.expm1(-rate * write * demands["writes"])
    return Evaluation({**found.metrics, "io_wait_pct": idle * any_write}, found.solution)


def _box_network(batch: Batch, demands: Demands, write: Array) -> Network:
    box = _box(batch, demands, write)
    return box.whole(_polling(box))


def _box(batch: Batch, demands: Demands, write: Array) -> _Box:
    queue_managers, engines = batch.number("queue_managers"), batch.number("rules_engines")
    processors, kb = batch.number("cpus"), batch.number("message_bytes") / 1024
    # the chance that a process of another queue manager runs where an engine wants to
    taken = 1 - (1 - 1 / processors) ** (demands["processes"] * (queue_managers - 1))
    # the chance that a processor served another queue manager, or another engine of this one, last
    other_manager, other_engine = 1 - 1 / queue_managers, 1 - 1 / engines
    work = batch.cpu_ratio * (1 + demands["cold_cache"] * other_manager) * _MS
    work *= np.where(batch.flag("failed_over"), demands["fail_over_cpu"], 1)
    # the lock is held over the write
    handover = 1 + demands["handover"] * (engines - 1)
    hold = (batch.cpu_ratio * demands["log_lock"] * _MS + write) * handover
    striped = batch.is_("disk_layout", "striped")
    # the stripes of the other box fail over with its queue managers
    stripes = np.where(batch.flag("failed_over"), 2.0, 1.0)
    stripe_disks = 1 + demands["stripe_width"]
    return _Box(
        engines=queue_managers * engines,
        processors=processors,
        engine_cpu=work * (demands["engine_cpu"] + demands["cpu_per_kb"] * kb),
        beside_cpu=work * demands["beside_cpu"] * (1 + demands["rival_engine"] * other_engine),
        wake_up=demands["wake_up"] * taken * _MS,
        log_hold=hold / np.where(striped, 1.0, _logs_in_use(queue_managers, engines)),
        logs=np.where(striped, _writes_apart(queue_managers, stripes, stripe_disks), queue_managers),
        queue_managers=queue_managers,
        lock_hold=hold,
        log_disks=np.where(striped, stripes * stripe_disks, np.inf),
        # the pages that a message changes go out together; a stripe, spread over its disks, does one such
        # write at a time
        queue_write=write,
        queue_disks=np.where(striped, stripes, queue_managers),
        awake=np.broadcast_to(demands["polling"], batch.size),
    )


def _write_time(batch: Batch, demands: Demands) -> Array:
    """The engine forces the log for each message, the driver for its commits of puts and of gets."""
    force_ms = demands.by("log_write", batch, "log_disk", absent=demands["log_write[fc_al]"])
    forces = 1 + 2 / batch.number("messages_per_commit")
    return (force_ms * forces + demands["log_per_kb"] * batch.number("message_bytes") / 1024) * _MS


def _writes_apart(queue_managers: Array, stripes: Array, disks: Array) -> Array:
    """Striped logs: how many write at once, when writes that meet on a disk wait for each other."""
    return stripes * disks * (1 - (1 - 1 / disks) ** (queue_managers / stripes))


def _logs_in_use(queue_managers: Array, engines: Array) -> Array:
    """Dedicated logs: the share that has work when as many engines want to write as there are logs.

    An engine has only the log of its own queue manager; another that stands idle is of no use to it.
    """
    all_engines = queue_managers * engines
    without_one = _log_choices(all_engines - engines, queue_managers) - _log_choices(
        all_engines, queue_managers
    )
    return 1 - np.exp(without_one)


def _log_choices(of: Array, chosen: Array) -> Array:
    """Logarithm of the number of ways to choose; minus infinity where there are too few."""
    left = np.maximum(of - chosen, 0)
    choices = gammaln(of + 1) - gammaln(chosen + 1) - gammaln(left + 1)
    return np.where(chosen <= of, choices, -np.inf)


def _polling(box: _Box) -> Array:
    """Processor time per message that engines take while they wait for disks.

    Work beside and polling leave the engines just the processors they use. The more these are, the higher is
    the rate and the more engines wait for disks, so only one number fits.
    """

    def waiting(some: _Box, left: Array) -> tuple[Array, Array]:
        solution = solve(some.engines_alone(left))
        rate = np.minimum(solution.throughput, some.queue_disks / some.queue_write)
        at_work, _, waking_up = solution.residence
        return rate, some.engines - rate * (at_work + waking_up)

    def unused(left: Array, row: Array) -> Array:
        some = box.only(row.astype(np.int64))
        rate, engines_waiting = waiting(some, left)
        return some.processors - left - rate * some.beside_cpu - some.awake * engines_waiting

    rows = np.arange(len(box.processors), dtype=float)
    found = elementwise.find_root(
        unused, (box.processors * 1e-9, box.processors), args=(rows,), tolerances={"xrtol": 1e-9}
    )
    rate, engines_waiting = waiting(box, found.x)
    return box.awake * engines_waiting / rate


_REFUSALS = (
    Refusal(
        "persistent: the hub was measured with persistent messages alone",
        lambda batch: ~batch.flag("persistent"),
    ),
    Refusal(
        "disk_layout: logs and queues on common disks were not measured",
        lambda batch: batch.is_("disk_layout", "shared"),
    ),
)


def _regimes(batch: Batch) -> Texts:
    return np.where(batch.flag("failed_over"), "fail-over", "normal").astype(object)


def _foretold(configuration: Configuration) -> str | None:
    """A hub should be known in fail-over once it is known in normal operation."""
    if not configuration.flat()["failed_over"]:
        return None
    disks = configuration.platform
    return f"fail-over of the {disks.disk_layout} {disks.log_disk} hub from normal operation"


def _transient(configuration: Configuration, fitted: Fitted, scenario: Scenario) -> Transient:
    """One of the two boxes fails. Where no load is told it is one that the other can just take over."""
    flat = {name: value for name, value in configuration.flat().items() if value is not None}
    offered = flat.pop("offered_rate_msgs_per_s", None)
    managers = flat["queue_managers"] // 2 if flat["failed_over"] else flat["queue_managers"]
    alone = flat | {"failed_over": False, "queue_managers": max(managers, 1)}
    together = flat | {"failed_over": True, "queue_managers": 2 * max(managers, 1)}
    batch, demands = fitted([Configuration.from_flat(alone), Configuration.from_flat(together)])
    network = _box_network(batch, demands, _write_time(batch, demands))
    most = float(solve(network).throughput[1])
    own = offered or _TAKEN_OVER * most / 2
    seen = fail_over(
        model_of(network, 0, own), model_of(network, 1, 2 * own),
        scenario.takeover_s, most - 2 * own, scenario.seed,
    )  # fmt: skip
    marks = [(0.0, "a box fails"), (scenario.takeover_s, "the other takes over")]
    if seen.normal_again is None:
        verdict = f"The backlog never ends: it grows by {seen.growth:.1f} messages a second."
    else:
        marks.append((seen.normal_again, "backlog worked off"))
        after = f"{seen.normal_again:.0f} s after the failure"
        verdict = f"The backlog of {seen.backlog.max():.0f} messages is worked off {after}."
    return Transient(
        title=f"Two boxes with {own:.0f} messages a second each, one fails",
        since="the failure",
        time=seen.time,
        courses=(
            Course("messages", "msgs/s", seen.messages),
            Course("messages waiting or under way", "", seen.backlog),
            Course("response time, 95th percentile", "s", seen.response_p95),
        ),
        marks=marks,
        metrics={
            "offered_rate_msgs_per_s": own,
            "backlog_msgs": float(seen.backlog.max()),
            "normal_again_s": seen.normal_again,
            "growth_msgs_per_s": seen.growth,
        },
        verdict=verdict,
    )


SYSTEM = System(
    name="hub",
    title="Rules hub, MQSeries Integrator V1.1 on Solaris",
    families=("rules_hub",),
    # how far the two boxes of a hub lie apart in normal operation
    targets=(
        Target("throughput_msgs_per_s", 0.036),
        Target("cpu_idle_pct", 1.05, "points"),
        Target("io_wait_pct", 1.6, "points"),
    ),
    parameters=_PARAMETERS,
    evaluate=evaluate,
    refusals=_REFUSALS,
    regimes=_regimes,
    foretold=_foretold,
    transient=_transient,
)
