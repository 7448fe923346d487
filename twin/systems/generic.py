"""Any broker whose demands are given: nothing is fitted, the configuration says it all."""

from __future__ import annotations

import numpy as np

from twin.queueing.network import Limit, Network, Station, cpu, delay, log, pipe
from twin.systems.model import Batch, Demands, Evaluation, Refusal, System, Target
from twin.systems.standard import evaluated

_MS = 1e-3
_BITS_PER_BYTE = 8
_KB_PER_MB = 1024


def _evaluate(batch: Batch, _: Demands) -> Evaluation:
    bytes_per_s = batch.number("network_mbps", absent=np.inf) * 1e6 / _BITS_PER_BYTE
    memory_kb = batch.number("memory_mb", absent=np.inf) * _KB_PER_MB
    network = Network(
        stations=[
            cpu(
                batch.number("demand_cpu_ms") * _MS,
                batch.number("cpus"),
                background=batch.number("demand_background_cpu_ms") * _MS,
            ),
            Station(
                "serial section",
                "serial",
                batch.number("demand_serial_ms") * _MS,
                servers=batch.number("serial_threads"),
            ),
            log(batch.number("demand_log_ms") * _MS, batch.number("commits_per_force")),
            pipe(batch.number("message_bytes") * batch.number("transmissions"), bytes_per_s),
            delay("delay", batch.number("demand_delay_ms") * _MS),
        ],
        population=batch.number("clients"),
        customers="clients",
        limits=[Limit("memory", np.maximum(batch.number("memory_per_client_kb"), 1e-9), memory_kb)],
    )
    return evaluated(network, batch)


_WAITED = ("demand_cpu_ms", "demand_serial_ms", "demand_log_ms", "demand_delay_ms")
_REFUSALS = (
    Refusal(
        "demand_cpu_ms: a message that costs nothing has no rate",
        lambda batch: np.logical_and.reduce([batch.number(name) == 0 for name in _WAITED]),
    ),
    Refusal(
        "memory_per_client_kb: not one client fits in memory_mb",
        lambda batch: batch.number("memory_per_client_kb") > batch.number("memory_mb") * _KB_PER_MB,
    ),
)

# stated demands are seldom nearer to the truth than this
_DOUBT = 0.10

SYSTEM = System(
    name="generic",
    title="Any broker described by its demands",
    families=("generic",),
    targets=(
        Target("throughput_msgs_per_s", _DOUBT),
        Target("response_ms", _DOUBT),
        Target("cpu_ms_per_msg", _DOUBT),
        Target("cpu_busy_pct", _DOUBT * 100, scale="points"),
    ),
    parameters=(),
    evaluate=_evaluate,
    refusals=_REFUSALS,
)
