"""Features that follow from a configuration's own columns.

Spark builds the feature tables and a served model answers single requests from these same functions on
pandas columns, so that a feature cannot mean two things.
"""

from __future__ import annotations

import pandas as pd


def hardware_derived(platforms: pd.DataFrame) -> pd.DataFrame:
    return platforms.assign(clock_capacity_mhz=platforms["cpus"] * pd.to_numeric(platforms["mhz"]))


def flow_derived(workloads: pd.DataFrame) -> pd.DataFrame:
    def number(column: str, missing: int) -> pd.Series:
        """A column that not every family has, and what it amounts to for the others."""
        return pd.to_numeric(workloads[column]).fillna(missing).astype("int64")

    return workloads.assign(
        copies=number("instances", 1) * number("execution_groups", 1),
        program_runs=number("compute_nodes", 0) * number("program_repeats", 1),
        deliveries=number("subscribers", 1),
    )
