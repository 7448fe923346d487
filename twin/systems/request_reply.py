"""Requesters that put a request to a queue manager and wait for the reply that a responder puts.

A round trip is four operations: request put and got, reply put and got. The requesters circulate between the
processors, the log if messages are persistent, the network, and a delay in which the queue manager does
nothing for them. There are always enough responders, so no request waits for one.
"""

from __future__ import annotations

import numpy as np

from twin.core.columns import Texts
from twin.queueing.network import Array, Network, Station, cpu, delay, log, pipe
from twin.systems.model import Batch, Demands, Evaluation, Parameter, System, Target, write_times
from twin.systems.standard import evaluated

_MS = 1e-3
_BITS_PER_BYTE = 8
# the request and the reply: each is written to the log once and crosses the network in both directions
_MESSAGES = 2

_PARAMETERS = (
    Parameter(
        "round_trip_cpu", "ms", 0.4, 0.7,
        "judged: four calls with their sends and receives, 300,000 instructions each at 3 GHz",
    ),
    Parameter("cpu_per_kb", "ms/KB", 0.01, 0.6, "judged: ten copies at 1 GB/s, encryption among them"),
    Parameter("persistent_cpu", "", 1.5, 0.3, "judged: building log records adds half of a call"),
    *write_times("force_ms"),
    Parameter("force_ms[untold]", "ms", 1.3, 1.0, "judged: midway between flash and a plain disk"),
    Parameter("forces", "", 4, 0.3, "judged: each of the four operations forces the log for itself"),
    Parameter("group_commit", "", 0.5, 0.5, "judged: as many commits as the root of the requesters"),
    Parameter("log_per_kb", "ms/KB", 0.01, 0.6, "judged: flash takes 100 MB/s in blocks of some KB"),
    Parameter(
        "delay", "ms", 0.5, 0.6,
        "judged: eight crossings of a local network at 50 us, and the programs' own work",
    ),
)  # fmt: skip


def _evaluate(batch: Batch, demands: Demands) -> Evaluation:
    persistent, clients = batch.flag("persistent"), batch.number("clients")
    message_bytes = batch.number("message_bytes")
    kb = _MESSAGES * message_bytes / 1024
    work = demands["round_trip_cpu"] + demands["cpu_per_kb"] * kb
    work = work * np.where(persistent, demands["persistent_cpu"], 1.0)
    bytes_per_s = batch.number("network_mbps", absent=np.inf) * 1e6 / _BITS_PER_BYTE
    network = Network(
        stations=[
            cpu(batch.cpu_ratio * work * _MS, batch.number("cpus")),
            log(
                np.where(persistent, _force_time(batch, demands), 0.0),
                clients ** np.minimum(demands["group_commit"], 1.0),
            ),
            # commits share a force, but every byte has to be written: a ceiling
            Station("log transfer", "disk", 0.0, np.where(persistent, demands["log_per_kb"] * kb, 0.0) * _MS),
            pipe(_MESSAGES * message_bytes, bytes_per_s),
            delay("network and clients", batch.network_ratio * demands["delay"] * _MS),
        ],
        population=clients,
        customers="requesters",
    )
    return evaluated(network, batch)


def _force_time(batch: Batch, demands: Demands) -> Array:
    force_ms = demands.by("force_ms", batch, "log_disk", absent=demands["force_ms[untold]"])
    return demands["forces"] * force_ms * _MS


def _regimes(batch: Batch) -> Texts:
    return np.where(batch.flag("persistent"), "persistent", "non-persistent").astype(object)


SYSTEM = System(
    name="request_reply",
    title="Requests and replies through a queue manager",
    families=("request_reply",),
    # judged: what runs of a harness on a machine of one's own differ by
    targets=(Target("throughput_msgs_per_s", 0.05), Target("cpu_busy_pct", 2.0, scale="points")),
    parameters=_PARAMETERS,
    evaluate=_evaluate,
    regimes=_regimes,
)
