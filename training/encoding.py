"""Configurations as the numbers a regressor takes: declared numbers as they are, declared choices one-hot."""

from __future__ import annotations

import numpy as np
import pandas as pd

from features.derivation import flow_derived, hardware_derived
from twin.core.columns import ABSENT, Columns
from twin.core.fields import Field
from twin.core.tables import FLOW_FIELDS, HARDWARE_FIELDS, FlowDerived, HardwareDerived

# names of machines and products identify a measurement, they do not explain it
FEATURES: tuple[Field, ...] = tuple(
    field for field in (*HARDWARE_FIELDS, *FLOW_FIELDS) if field.kind != "text" or field.choices
)
_DERIVED = {*HardwareDerived.model_fields, *FlowDerived.model_fields}

# what more of it can only do to the rate
MONOTONE: dict[str, int] = {
    "cpus": 1,
    "mhz": 1,
    "clock_capacity_mhz": 1,
    "message_bytes": -1,
    "bytes_moved": -1,
    "persistent": -1,
    "program_runs": -1,
    "copy_nodes": -1,
    "destinations": -1,
}


def features_of(columns: Columns) -> pd.DataFrame:
    """Feature columns, derived ones included, from the same functions that fill the feature tables."""
    given = {
        field.name: _choice(columns, field.name) if field.kind == "text" else columns.number(field.name)
        for field in (*HARDWARE_FIELDS, *FLOW_FIELDS)
        if field.name not in _DERIVED
    }
    return flow_derived(hardware_derived(pd.DataFrame(given)))[[field.name for field in FEATURES]]


def encode(features: pd.DataFrame) -> pd.DataFrame:
    encoded: dict[str, np.ndarray] = {}
    for field in FEATURES:
        if field.choices:
            for choice in field.choices:
                encoded[f"{field.name}={choice}"] = (features[field.name] == choice).to_numpy(np.float64)
        else:
            encoded[field.name] = pd.to_numeric(features[field.name]).to_numpy(np.float64, na_value=np.nan)
    return pd.DataFrame(encoded, index=features.index)


def monotone_constraints(encoded_columns: list[str], sign: int = 1) -> tuple[int, ...]:
    """`sign` is -1 for what falls when the rate rises."""
    return tuple(sign * MONOTONE.get(name, 0) for name in encoded_columns)


def _choice(columns: Columns, name: str) -> np.ndarray:
    texts = columns.texts(name)
    texts[texts == ABSENT] = None
    return texts
