"""Features that follow from a configuration's own columns.

Spark builds the feature tables and a served model answers single requests from these same functions on
pandas columns, so that a feature cannot mean two things.
"""

from __future__ import annotations

import pandas as pd


def hardware_derived(platforms: pd.DataFrame) -> pd.DataFrame:
    return platforms.assign(clock_capacity_mhz=platforms["cpus"] * platforms["mhz"])


def flow_derived(workloads: pd.DataFrame) -> pd.DataFrame:
    numbers = workloads[["compute_nodes", "program_repeats", "subscribers"]].apply(pd.to_numeric)
    return workloads.assign(
        copies=workloads["instances"] * workloads["execution_groups"],
        program_runs=(numbers["compute_nodes"] * numbers["program_repeats"]).fillna(0).astype("int64"),
        deliveries=numbers["subscribers"].fillna(1).astype("int64"),
    )
