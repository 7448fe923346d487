"""The regressor's hyper-parameters: data, shipped with the project or found by a search."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from itertools import product
from typing import Any

import numpy as np

from training.dataset import Data
from training.encoding import encode, features_of
from training.regression import held_out_errors
from twin.core.tables import TARGETS

_FILE = "hyperparameters.json"
GRID: dict[str, tuple[float, ...]] = {
    "n_estimators": (300, 800),
    "learning_rate": (0.05,),
    "max_depth": (3, 4, 6),
    "min_child_weight": (1, 3),
    "reg_lambda": (1.0,),
}


@cache
def shipped() -> dict[str, Any]:
    text = resources.files("training").joinpath(_FILE).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def tuned(data: Data) -> dict[str, Any]:
    """The ones with the smallest mean error on groups that the regressor had not seen, over all targets."""
    candidates = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]
    errors = np.zeros(len(candidates))
    for target in TARGETS:
        if ids := data.ids(target):
            matrix, logarithms = encode(features_of(data.columns(ids))), data.logarithms(target, ids)
            groups = data.groups(ids)
            errors += [
                np.abs(held_out_errors(matrix, logarithms, groups, target, one)).mean() for one in candidates
            ]
    return candidates[int(errors.argmin())]
