"""What a model was trained on, so that it can say where it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from training.encoding import FEATURES


def domain_of(features: pd.DataFrame) -> dict[str, Any]:
    """Per feature the choices or the range that the training rows hold; plain data, saved with the model."""
    domain: dict[str, Any] = {}
    for field in FEATURES:
        seen = features[field.name].dropna()
        if field.choices:
            domain[field.name] = sorted(seen.unique())
        elif not seen.empty:
            domain[field.name] = [float(seen.min()), float(seen.max())]
    return domain


def excuse_for(row: Mapping[Any, Any], domain: dict[str, Any]) -> str | None:
    """A kind of thing that no training row contains cannot be predicted."""
    for field in FEATURES:
        value = row[field.name]
        if field.choices and not pd.isna(value) and value not in domain[field.name]:
            return f"no measurement has {field.name} = {value}"
    return None


def outside(row: Mapping[Any, Any], domain: dict[str, Any]) -> str | None:
    """The numbers that lie beyond the measured range."""
    beyond = []
    for field in FEATURES:
        value = row[field.name]
        if not field.choices and not pd.isna(value) and field.name in domain:
            low, high = domain[field.name]
            if not low <= value <= high:
                beyond.append(f"{field.name} = {value:g} (measured: {low:g} to {high:g})")
    return "; ".join(beyond) or None
