"""A hub with a pair of channels to each of many branches, and the storm when a failed network comes back.

Before the failure it is an open network: messages at the offered rate, on processors that the upkeep of all
channels has taken a part of. After it every channel retries on a timer. A start takes processor time and log
writes; what a retry interval cannot serve fails half-way, and that effort is lost. When the failing starts
alone need all there is, the channels never come back.
"""

from __future__ import annotations

import numpy as np

from twin.core.columns import Texts
from twin.core.configuration import Configuration
from twin.queueing.bounds import capacity
from twin.queueing.network import Array, Limit, Network, Quantity, cpu, disk, log, pipe
from twin.simulation.storm import Recovery, Storm, recover
from twin.simulation.transient import Course, Scenario, Transient
from twin.systems.model import (
    Batch,
    Demands,
    Evaluation,
    Fitted,
    Parameter,
    System,
    Target,
    printed_constants,
    write_times,
)
from twin.systems.standard import solved

PRINTED = printed_constants("cluster")

PARAMETERS = (
    *write_times("write_ms"),
    Parameter(
        "message_ms", "ms", 3, 0.5, "request and reply: two channel transfers and a dozen calls at 700 MHz"
    ),
    Parameter("message_ms_per_kb", "ms/KB", 0.05, 0.5, "each KB copied some ten times at 200 MB/s"),
    Parameter("forces", "forces", 3, 0.3, "receiving, serving and replying each commit once, line 847"),
    Parameter("log_ms_per_kb", "ms/KB", 0.05, 0.5, "a 10,000 rpm disk of that time writes about 20 MB/s"),
    Parameter("header_kb", "KB", 0.5, 0.3, "message descriptor and log record header"),
    Parameter("delivered", "share", 0.99, 0.02, "close to the expected 100 a second, line 96"),
    Parameter(
        "upkeep_ms_per_s", "ms/s", 0.2, 1.0, "an idle channel's state costs something, lines 549 and 550"
    ),
    Parameter(
        "crowding", "share", 0.2, 0.7, "per 1000 pairs; the burden increases with the channels, line 550"
    ),
    Parameter("heartbeat_ms", "ms", 1, 0.5, "a flow and its answer without a message in them"),
    Parameter("agent_upkeep", "share", 0.5, 0.5, "what an untrusted channel's agent adds, lines 377 and 455"),
    Parameter(
        "start_ms", "ms", 50, 0.7, "connection, negotiation, a thread, synchronisation: tens of milliseconds"
    ),
    Parameter("agent_start", "share", 0.5, 0.5, "an untrusted start connects to an agent as well, line 456"),
    Parameter("process_ms", "ms", 300, 0.5, "a process with the product's libraries, at 700 MHz"),
    Parameter("failed_effort", "share", 0.5, 0.5, "a start that fails is on average half done, line 479"),
    # the simulator alone needs it: whom the hub does not turn to for so long gives up
    Parameter("patience", "s", 20, 0.5, "a connection is tried for 3, 6 and 12 seconds before it fails"),
    Parameter(
        "error_writes", "writes", 2, 0.3, "an appended error message: the file and its directory entry"
    ),
    Parameter("threads_per_process", "threads", 63, 0.2, "what the product's processes have untuned"),
    Parameter("process_heap_kb", "KB", 512, 0.2, "of a service's desktop: the article that line 445 names"),
    Parameter("other_heap_mb", "MB", 4, 0.2, "the logged-on user's desktop and what all share: same article"),
    Parameter("logged_on_heap", "share", 0.5, 0.3, "strmqm relieves the demand for desktop heap, line 472"),
    Parameter(
        "message_lag", "intervals", 0.5, 0.5, "caught in a channel that was down: half an interval more"
    ),
    Parameter(
        "scratchpad_writes", "writes", 3, 0.5, "a file forced to disk: data, size, directory; line 526"
    ),
)


def evaluate(batch: Batch, demands: Demands) -> Evaluation:
    cpus, channels = batch.number("cpus"), _channels(batch)
    each, crowding = _upkeep(batch, demands)
    upkeep = np.minimum(channels * (each + crowding * channels), _most_upkeep(batch))
    messages = _messages(batch, demands, cpus - upkeep)
    running = solved(messages, batch)
    work = upkeep + running.throughput * messages.stations[0].demand
    busy = np.minimum(100 * work / cpus, 100)
    # what the applications manage to send of what they are asked to
    paced = demands["delivered"] * batch.number("offered_rate_msgs_per_s", absent=np.inf)

    # in the end messages flow again and upkeep is back; if messages want all the rest, starts get half of it
    spare = np.maximum(cpus - work, (cpus - upkeep) / 2)
    storm, ebb = start_storm(batch, demands, cpus), start_storm(batch, demands, spare)
    heap_suffices = storm.admitted() >= channels
    interval = batch.number("retry_interval_s")
    restart = restart_time(
        channels,
        interval,
        capacity(storm).min(axis=0),
        capacity(ebb).min(axis=0),
        demands["failed_effort"],
    )
    restart = np.where(heap_suffices, restart, np.nan)
    scratchpads = channels * demands["scratchpad_writes"] * _write_ms(batch, demands) / 1000
    metrics = {
        "throughput_msgs_per_s": np.minimum(running.throughput, paced),
        "response_ms": running.response * 1000,
        "cpu_ms_per_msg": 1000 * work / running.throughput,
        "cpu_busy_pct": busy,
        "cpu_idle_pct": 100 - busy,
        "channel_recovery_s": restart,
        "throughput_recovery_s": restart + demands["message_lag"] * interval,
        # only persistent messages leave a trace in the channels' files
        "checkpoint_s": np.where(batch.flag("persistent"), scratchpads, np.nan),
        "recovered": np.isfinite(restart).astype(float),
        "failure_files_seen": (~heap_suffices).astype(float),
    }
    return Evaluation(metrics, running)


def _messages(batch: Batch, demands: Demands, processors: Array) -> Network:
    """Requests and replies of the driving applications, each of which waits for its reply."""
    kb = batch.number("message_bytes") / 1024
    logged_kb = kb + demands["header_kb"]
    # one force takes along what has gathered in the log buffer, at most a message of each application
    buffered = PRINTED["log_buffer_pages"] * PRINTED["page_kb"] / logged_kb
    sharing = np.clip(buffered, 1, PRINTED["driving_applications"])
    force_ms = demands["forces"] * (_write_ms(batch, demands) + demands["log_ms_per_kb"] * logged_kb)
    message_ms = batch.cpu_ratio * (demands["message_ms"] + demands["message_ms_per_kb"] * kb)
    bytes_per_s = PRINTED["network_mbps"] * 1e6 / 8 / batch.network_ratio
    return Network(
        [
            cpu(message_ms / 1000, processors),
            log(np.where(batch.flag("persistent"), force_ms, 0) / 1000, sharing),
            pipe(logged_kb * 1024, bytes_per_s),
        ],
        PRINTED["driving_applications"],
        "driving applications",
    )


def _upkeep(batch: Batch, demands: Demands) -> tuple[Array, Array]:
    """Processors that running channels keep busy, messages or not: r channels take r (each + crowding r)."""
    agent = batch.cpu_ratio * np.where(batch.flag("trusted"), 1, 1 + demands["agent_upkeep"]) / 1000
    alone_ms = demands["upkeep_ms_per_s"] + demands["heartbeat_ms"] / batch.number("heartbeat_s")
    crowding_ms = demands["upkeep_ms_per_s"] * demands["crowding"] / 1000 / PRINTED["channels_per_pair"]
    return agent * alone_ms, agent * crowding_ms


def _most_upkeep(batch: Batch) -> Array:
    """However busy the upkeep keeps the machine, message threads get their turn among the channels'."""
    turn = PRINTED["driving_applications"] / (PRINTED["driving_applications"] + _channels(batch))
    return batch.number("cpus") * (1 - turn)


def start_storm(batch: Batch, demands: Demands, processors: Array) -> Network:
    """Channels that start, on the processors left to them and on the disk of queues and error logs.

    The heap is asked for here only: the report saw it run out in recovery, after the same channels had run.
    """
    processes = _processes_per_channel(batch, demands)
    agent = np.where(batch.flag("trusted"), 1, 1 + demands["agent_start"])
    start_ms = batch.cpu_ratio * (demands["start_ms"] * agent + demands["process_ms"] * processes)
    errors = np.maximum(PRINTED["error_messages"] - batch.number("suppressed_messages"), 0)
    error_ms = errors * demands["error_writes"] * _write_ms(batch, demands)
    # processes that a service starts have desktops of their own
    heap_kb = demands["process_heap_kb"] * np.where(
        batch.is_("start_method", "strmqm"), demands["logged_on_heap"], 1
    )
    heap_mb = np.where(
        batch.is_("os", "windows"), PRINTED["desktop_heap_mb"] - demands["other_heap_mb"], np.inf
    )
    return Network(
        [cpu(start_ms / 1000, processors), disk(error_ms / 1000, name="queue disk")],
        _channels(batch),
        "channels",
        [Limit("desktop heap", processes * heap_kb / 1024, heap_mb)],
    )


def restart_time(
    channels: Array, interval: Array, at_first: Array, at_last: Array, failed: Quantity
) -> Array:
    """Seconds until all channels run when c starts a second are possible, from `at_first`, when none runs,
    down to `at_last`, when the upkeep of all has come back; NaN where they never come back.

    n waiting channels try n / interval times a second. If that is more than c, then k of them succeed: all
    effort is spent when k + failed (n / interval - k) = c. This flood ends when one interval is long enough
    for all that are left, and then it passes. Both k and c are linear in n, so channels take their number
    over the logarithmic mean of the rates at both ends.
    """
    tries = channels / interval
    flooded = tries > at_first
    starting = (at_last > 0) & (~flooded | (at_first > failed * tries))
    draining = starting & flooded
    left = np.where(
        draining, channels * at_last / np.where(draining, tries - at_first + at_last, 1), channels
    )
    turning = np.where(draining, left / interval, 1.0)
    succeeding = np.where(draining, (at_first - failed * tries) / np.maximum(1 - failed, 1e-9), 1.0)
    flood = (channels - left) / _log_mean(succeeding, turning)
    return np.where(starting, flood + interval, np.nan)


def _log_mean(one: Array, other: Array) -> Array:
    apart = np.log(one / other)
    near = np.abs(apart) < 1e-8
    return other * np.where(near, 1 + apart / 2, np.expm1(apart) / np.where(near, 1, apart))


def storm_of(batch: Batch, demands: Demands, at: int = 0, second_hub: bool = False) -> Storm:
    """Configuration `at` as the simulator plays it: the same work, channel by channel."""
    starts = start_storm(batch, demands, batch.number("cpus"))
    messages = _messages(batch, demands, batch.number("cpus"))
    at_work, *elsewhere = messages.rows("demand")[:, at]
    start_work, error_writing = starts.rows("demand")[:, at]
    each, crowding = _upkeep(batch, demands)
    (heap,) = starts.limits
    interval = float(batch.number("retry_interval_s")[at])
    paced = batch.number("offered_rate_msgs_per_s", absent=np.inf) * demands["delivered"]
    return Storm(
        channels=int(_channels(batch)[at]),
        processors=float(batch.number("cpus")[at]),
        start_work=float(start_work),
        connect_work=float(start_work * min(_one(demands["failed_effort"], at), 1.0)),
        error_writing=float(error_writing),
        patience=_one(demands["patience"], at),
        retry_interval=interval,
        heartbeat=float(batch.number("heartbeat_s")[at]),
        room=_one(np.divide(heap.capacity, heap.per_customer), at),
        upkeep_each=_one(each, at),
        upkeep_crowding=_one(crowding, at),
        most_upkeep=float(_most_upkeep(batch)[at]),
        applications=int(PRINTED["driving_applications"]),
        # without an offered rate an application sends its next message as soon as it has its reply
        pace=float(PRINTED["driving_applications"] / paced[at]),
        message_work=float(at_work),
        message_rest=float(sum(elsewhere)),
        caught=_one(demands["message_lag"], at) * interval,
        second_hub=second_hub,
    )


def _transient(configuration: Configuration, fitted: Fitted, scenario: Scenario) -> Transient:
    """The network near the hub is cut and comes back when the last channel is down."""
    batch, demands = fitted([configuration])
    storm = storm_of(batch, demands, second_hub=scenario.second_hub)
    seen = recover(storm, scenario.seed)
    back = [(0.0, "network back"), (-seen.outage, "network cut")]
    if seen.channel_recovery is not None:
        back.append((seen.channel_recovery, "all channels"))
    if seen.throughput_recovery:
        back.append((seen.throughput_recovery, "full throughput"))
    return Transient(
        title=f"{configuration.flat()['channel_pairs']} channel pairs after a network failure",
        since="the network is back",
        time=seen.time,
        courses=(
            Course("channels that run", "", seen.running),
            Course("messages", "msgs/s", seen.messages),
            Course("processors in use", "%", 100 * seen.busy / storm.processors),
            Course("starts given up", "1/s", seen.given_up),
        ),
        marks=back,
        metrics={
            "channels_down_s": seen.dropped,
            "channel_recovery_s": seen.channel_recovery,
            "throughput_recovery_s": seen.throughput_recovery,
            "recovered": float(seen.channel_recovery is not None),
            "failure_files_seen": float(seen.heap_ran_out),
        },
        verdict=_verdict(storm, seen),
    )


def _verdict(storm: Storm, seen: Recovery) -> str:
    if seen.channel_recovery is not None:
        return f"All {storm.channels} channels run {seen.channel_recovery:.0f} s after the network is back."
    missing = f"{storm.channels - seen.running[-1]:.0f} of {storm.channels} channels"
    watched = f"{seen.time[-1] / 60:.0f} minutes after the network is back {missing}"
    if seen.heap_ran_out:
        return f"{watched} still fail: the desktop heap has no room for more than {storm.room:.0f}."
    if storm.error_writing * storm.channels > storm.retry_interval:
        return f"{watched} still fail: writing their errors takes longer than a retry interval."
    return f"{watched} still fail: starts that are given up take the processors from the others."


def _one(quantity: Quantity, at: int) -> float:
    return float(quantity if np.ndim(quantity) == 0 else np.asarray(quantity)[at])


def _channels(batch: Batch) -> Array:
    return PRINTED["channels_per_pair"] * batch.number("channel_pairs")


def _processes_per_channel(batch: Batch, demands: Demands) -> Array:
    """Channels run as threads of pooling processes, and untrusted ones have a thread of an agent as well."""
    tuned, untuned = batch.flag("tuned"), demands["threads_per_process"]
    pooling = np.where(tuned, PRINTED["tuned_pooling_threads"], untuned)
    agents = np.where(tuned, PRINTED["tuned_agent_threads"], untuned)
    return 1 / pooling + np.where(batch.flag("trusted"), 0, 1 / agents)


def _write_ms(batch: Batch, demands: Demands) -> Array:
    """Disks that a configuration does not name are taken for plain ones."""
    return demands.by("write_ms", batch, "log_disk", absent=demands["write_ms[scsi]"])


def _regimes(batch: Batch) -> Texts:
    trusted = np.where(batch.flag("trusted"), "trusted", "untrusted").astype(object)
    found: Texts = trusted + np.where(batch.flag("tuned"), ", tuned", "").astype(object)
    return found


SYSTEM = System(
    name="cluster",
    title="A hub of a large cluster: message rate, processor use and recovery after a network failure",
    families=("cluster",),
    targets=(
        Target("throughput_msgs_per_s", 0.01),
        Target("cpu_busy_pct", 3, "points"),
        # each test was run once, and the times are not repeatable to the second (lines 350 and 351)
        Target("channel_recovery_s", 0.1),
        Target("throughput_recovery_s", 0.1),
        Target("checkpoint_s", 0.1),
    ),
    parameters=PARAMETERS,
    evaluate=evaluate,
    regimes=_regimes,
    transient=_transient,
    # timers: the physics is the same however slow they are
    reach={"retry_interval_s": 60, "heartbeat_s": 60},
)
