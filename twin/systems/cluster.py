"""A hub with a pair of channels to each of many branches, and the storm when a failed network comes back.

Before the failure it is an open network: messages at the offered rate, on processors that the upkeep of all
channels has taken a part of. After it every channel retries on a timer. A start takes processor time and log
writes; what a retry interval cannot serve fails half-way, and that effort is lost. When the failing starts
alone need all there is, the channels never come back.
"""

from __future__ import annotations

import numpy as np

from twin.core.columns import Texts
from twin.queueing.bounds import capacity
from twin.queueing.network import Array, Limit, Network, Quantity, cpu, disk, log, pipe
from twin.systems.model import (
    Batch,
    Demands,
    Evaluation,
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
    Parameter(
        "bunching", "share", 0.5, 0.5, "timers set by one outage: between evenly spread and all at once"
    ),
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
    # however busy the upkeep keeps the machine, message threads get their turn among those of the channels
    turn = PRINTED["driving_applications"] / (PRINTED["driving_applications"] + channels)
    upkeep = np.minimum(_upkeep(batch, demands), cpus * (1 - turn))
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
        demands["bunching"],
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


def _upkeep(batch: Batch, demands: Demands) -> Array:
    """Processors that running channels keep busy, messages or not."""
    crowding = 1 + demands["crowding"] * batch.number("channel_pairs") / 1000
    each_ms = demands["upkeep_ms_per_s"] * crowding + demands["heartbeat_ms"] / batch.number("heartbeat_s")
    agent = np.where(batch.flag("trusted"), 1, 1 + demands["agent_upkeep"])
    return batch.cpu_ratio * _channels(batch) * each_ms * agent / 1000


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
    channels: Array, interval: Array, at_first: Array, at_last: Array, failed: Quantity, bunched: Quantity
) -> Array:
    """Seconds until all channels run when c starts a second are possible, from `at_first`, when none runs,
    down to `at_last`, when the upkeep of all has come back; NaN where they never come back.

    n waiting channels try n / interval times a second. If that is more than c, then k of them succeed: all
    effort is spent when k + failed (n / interval - k) = c. This flood ends when one interval is long enough
    for all that are left. The interval passes, and what is bunched at its end is worked off after it. Both k
    and c are linear in n, so channels take their number over the logarithmic mean of the rates at both ends.
    """
    tries = channels / interval
    flooded = tries > at_first
    starting = (at_last > 0) & (~flooded | (at_first > failed * tries))
    draining = starting & flooded
    at_last = np.where(starting, at_last, 1)
    left = np.where(
        draining, channels * at_last / np.where(draining, tries - at_first + at_last, 1), channels
    )
    turning = np.where(draining, left / interval, np.where(starting, at_first, 1))
    succeeding = np.where(draining, (at_first - failed * tries) / np.maximum(1 - failed, 1e-9), turning)
    flood = (channels - left) / _log_mean(succeeding, turning)
    rest = bunched * left / _log_mean(turning, at_last)
    return np.where(starting, flood + interval + rest, np.nan)


def _log_mean(one: Array, other: Array) -> Array:
    apart = np.log(one / other)
    near = np.abs(apart) < 1e-8
    return other * np.where(near, 1 + apart / 2, np.expm1(apart) / np.where(near, 1, apart))


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
    # timers: the physics is the same however slow they are
    reach={"retry_interval_s": 60, "heartbeat_s": 60},
)
