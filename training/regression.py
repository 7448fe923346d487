"""The regressor: XGBoost on the logarithm of a target, with intervals from held-out groups."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from training.conformal import Reach
from training.encoding import FEATURES, encode, features_of, monotone_constraints
from twin.core.columns import Columns, Texts
from twin.core.prediction import THROUGHPUT
from twin.queueing.network import Array

if TYPE_CHECKING:
    import xgboost

PREDICTOR = "regression"
INNER_FOLDS = 5
_FIXED: dict[str, Any] = {"n_jobs": 1, "random_state": 7, "tree_method": "hist"}


@dataclass(frozen=True)
class Regression:
    """Of one target."""

    booster: xgboost.XGBRegressor
    # what the rows hold: the choices or the range of each feature
    domain: dict[str, Any]
    reach: Reach
    # error of each training row by a model that had not seen its group; not kept in a file
    held_out: Array

    @classmethod
    def fit(
        cls,
        rows: Columns,
        logarithms: Array,
        groups: Sequence[str],
        target: str,
        parameters: dict[str, Any],
    ) -> Regression:
        features = features_of(rows)
        matrix = encode(features)
        held_out = held_out_errors(matrix, logarithms, groups, target, parameters)
        return cls(
            _fitted(matrix, logarithms, target, parameters), domain_of(features), Reach.of(held_out), held_out
        )

    def at(self, columns: Columns) -> tuple[Array, Texts, Texts]:
        """Logarithms, excuses for kinds that no row contains, and numbers that lie outside the measured
        ones."""
        features = features_of(columns)
        found: Array = self.booster.predict(encode(features)).astype(np.float64)
        return found, excuses(features, self.domain), outside(features, self.domain)

    def save(self, folder: Path, name: str) -> None:
        self.booster.save_model(folder / f"{name}.json")
        card = {"domain": self.domain, "reach": [self.reach.inner, self.reach.outer]}
        (folder / f"{name}.card.json").write_text(json.dumps(card))

    @classmethod
    def load(cls, folder: Path, name: str) -> Regression:
        import xgboost

        booster = xgboost.XGBRegressor()
        booster.load_model(folder / f"{name}.json")
        card = json.loads((folder / f"{name}.card.json").read_text())
        return cls(booster, card["domain"], Reach(*card["reach"]), np.zeros(0))


def held_out_errors(
    matrix: pd.DataFrame, logarithms: Array, groups: Sequence[str], target: str, parameters: dict[str, Any]
) -> Array:
    """What a model says that had not seen a row's group, less what was measured."""
    from sklearn.model_selection import GroupKFold

    folds = min(INNER_FOLDS, len(set(groups)))
    if folds < 2:
        return np.full(len(logarithms), np.nan)
    predicted = np.empty_like(logarithms)
    for train, test in GroupKFold(folds).split(matrix, groups=groups):
        model = _fitted(matrix.iloc[train], logarithms[train], target, parameters)
        predicted[test] = model.predict(matrix.iloc[test])
    return predicted - logarithms


def _fitted(
    matrix: pd.DataFrame, logarithms: Array, target: str, parameters: dict[str, Any]
) -> xgboost.XGBRegressor:
    import xgboost

    sign = 1 if target == THROUGHPUT else -1
    constraints = monotone_constraints(list(matrix.columns), sign)
    return xgboost.XGBRegressor(**parameters, **_FIXED, monotone_constraints=constraints).fit(
        matrix, logarithms
    )


def domain_of(features: pd.DataFrame) -> dict[str, Any]:
    """Per feature the choices or the range that the rows hold; plain data."""
    domain: dict[str, Any] = {}
    for field in FEATURES:
        seen = features[field.name].dropna()
        if field.choices:
            domain[field.name] = sorted(seen.unique())
        elif not seen.empty:
            domain[field.name] = [float(seen.min()), float(seen.max())]
    return domain


def excuses(features: pd.DataFrame, domain: dict[str, Any]) -> Texts:
    """A kind of thing that no training row contains cannot be predicted."""
    found = np.full(len(features), None, dtype=object)
    for field in FEATURES:
        if not field.choices:
            continue
        for choice in set(features[field.name].dropna().unique()) - set(domain[field.name]):
            for at in np.flatnonzero(features[field.name] == choice):
                found[at] = found[at] or f"no measurement has {field.name} = {choice}"
    return found


def outside(features: pd.DataFrame, domain: dict[str, Any]) -> Texts:
    """The numbers that lie beyond the measured range."""
    found = np.full(len(features), None, dtype=object)
    for field in FEATURES:
        if field.choices or field.name not in domain:
            continue
        low, high = domain[field.name]
        values = pd.to_numeric(features[field.name]).to_numpy(np.float64, na_value=np.nan)
        for at in np.flatnonzero((values < low) | (values > high)):
            said = f"{field.name} = {values[at]:g} (measured: {low:g} to {high:g})"
            found[at] = said if found[at] is None else f"{found[at]}; {said}"
    return found
