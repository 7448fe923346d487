"""Features that follow from a configuration's own columns.

Spark builds the feature tables and a served model answers single requests from these same functions on
pandas columns, so that a feature cannot mean two things.
"""

from __future__ import annotations

import pandas as pd

from twin.systems.messaging import under_way
from twin.systems.transfer import ratings


def hardware_derived(platforms: pd.DataFrame) -> pd.DataFrame:
    cpus = _number(platforms, "cpus")
    write_ms = {kind: float(disk["write_ms"]) for kind, disk in ratings()["log_disk"].items()}
    return platforms.assign(
        clock_capacity_mhz=cpus * _number(platforms, "mhz"),
        rating_per_cpu=_number(platforms, "specint_rate95") / cpus,
        lspr_itr_per_cpu=_number(platforms, "lspr_itr") / cpus,
        log_write_ms=platforms["log_disk"].map(write_ms).astype("float64"),
        memory_mb_per_cpu=_number(platforms, "memory_mb") / cpus,
    )


def flow_derived(workloads: pd.DataFrame) -> pd.DataFrame:
    copies = _number(workloads, "instances", 1) * _number(workloads, "execution_groups", 1)
    subscribers = _number(workloads, "subscribers").fillna(_number(workloads, "topic_subscribers", 1))
    engines = _number(workloads, "queue_managers", 1) * _number(workloads, "rules_engines", 1)
    callers = _number(workloads, "clients").fillna(_number(workloads, "client_threads"))
    callers = callers.fillna(_messages_under_way(workloads)).fillna(1)
    per_commit = _number(workloads, "messages_per_commit").fillna(_number(workloads, "batch_size", 1))
    persistent = workloads["persistent"].eq(True).astype("float64")
    return workloads.assign(
        copies=copies.astype("int64"),
        program_runs=(
            _number(workloads, "compute_nodes", 0) * _number(workloads, "program_repeats", 1)
        ).astype("int64"),
        deliveries=subscribers.astype("int64"),
        population=(copies * engines * callers).astype("int64"),
        commits_per_message=persistent / per_commit,
        bytes_moved=(_number(workloads, "message_bytes") * (1 + subscribers)).astype("Int64"),
    )


def _messages_under_way(workloads: pd.DataFrame) -> pd.Series:
    columns = ("producers", "window", "consumers", "prefetch")
    counted = under_way(*(_number(workloads, name).to_numpy() for name in columns))
    return pd.Series(counted, index=workloads.index)


def _number(frame: pd.DataFrame, column: str, missing: float = float("nan")) -> pd.Series:
    """A column that not every family has, and what it amounts to for the others."""
    return pd.to_numeric(frame[column]).astype("float64").fillna(missing)
