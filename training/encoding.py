"""Feature rows as the numbers a regressor takes: declared numbers as they are, declared choices one-hot."""

from __future__ import annotations

import numpy as np
import pandas as pd

from features.derivation import flow_derived, hardware_derived
from twin.core.fields import Field
from twin.core.tables import FLOW_FEATURES, HARDWARE_FEATURES

# names of machines and products identify a measurement, they do not explain it
FEATURES: tuple[Field, ...] = tuple(
    field
    for table in (HARDWARE_FEATURES, FLOW_FEATURES)
    for field in table.fields
    if field.name not in table.key and (field.kind != "text" or field.choices)
)

# what more of it can only do to the rate
MONOTONE: dict[str, int] = {
    "cpus": 1,
    "mhz": 1,
    "clock_capacity_mhz": 1,
    "message_bytes": -1,
    "persistent": -1,
    "program_runs": -1,
    "copy_nodes": -1,
    "destinations": -1,
    "deliveries": -1,
}


def with_derived(configurations: pd.DataFrame) -> pd.DataFrame:
    return flow_derived(hardware_derived(configurations))


def encode(features: pd.DataFrame) -> pd.DataFrame:
    columns: dict[str, np.ndarray] = {}
    for field in FEATURES:
        if field.choices:
            for choice in field.choices:
                columns[f"{field.name}={choice}"] = (features[field.name] == choice).to_numpy(np.float64)
        else:
            columns[field.name] = pd.to_numeric(features[field.name]).to_numpy(np.float64, na_value=np.nan)
    return pd.DataFrame(columns, index=features.index)


def monotone_constraints(encoded_columns: list[str]) -> tuple[int, ...]:
    return tuple(MONOTONE.get(name, 0) for name in encoded_columns)
