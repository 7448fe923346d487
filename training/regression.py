"""The throughput regressor: XGBoost on the logarithm of the rate, with intervals from held-out groups."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pydantic import ValidationError

from training.domain import domain_of, excuse_for, outside
from training.encoding import encode, monotone_constraints, with_derived
from twin.core.configuration import Configuration
from twin.core.fields import fields_of

if TYPE_CHECKING:
    import xgboost

TARGET = "throughput_msgs_per_s"
PREDICTOR = "regression"
FOLDS = 10
PARAMETERS: dict[str, Any] = {
    "n_estimators": 300,
    "learning_rate": 0.05,
    "max_depth": 4,
    "min_child_weight": 1,
    "subsample": 1.0,
    "reg_lambda": 1.0,
    "n_jobs": 1,
    "random_state": 7,
}


@dataclass(frozen=True)
class Scores:
    """Errors in percent on groups that the model had not seen."""

    n: int
    median_ape: float
    mape: float
    p90_ape: float


class ThroughputRegression:
    def __init__(self, booster: xgboost.XGBRegressor, card: dict[str, Any]) -> None:
        self._booster = booster
        self._card = card

    @classmethod
    def fit(cls, training_set: pd.DataFrame, table_version: int) -> tuple[ThroughputRegression, Scores]:
        """Fit on all rows; the intervals and the scores come from models that had not seen a row's group."""
        rows = training_set.dropna(subset=[TARGET])
        matrix, log_rate = encode(rows), np.log(rows[TARGET].to_numpy())
        held_out = _held_out_predictions(matrix, log_rate, rows["source_id"] + "/" + rows["exam_group"])
        card = {
            "domain": domain_of(rows),
            "log_error_quantiles": {
                str(level): _conformal_quantile(np.abs(held_out - log_rate), level) for level in (0.5, 0.9)
            },
            "table_version": table_version,
        }
        return cls(_fit(matrix, log_rate), card), _scores(held_out, log_rate)

    def save(self, folder: Path) -> None:
        self._booster.save_model(folder / "booster.json")
        (folder / "card.json").write_text(json.dumps(self._card, indent=1))

    @classmethod
    def load(cls, folder: Path) -> ThroughputRegression:
        import xgboost

        booster = xgboost.XGBRegressor()
        booster.load_model(folder / "booster.json")
        return cls(booster, json.loads((folder / "card.json").read_text()))

    def predict_flat(self, requests: pd.DataFrame) -> pd.DataFrame:
        """Predictions or excuses for flat requests, in order; what a request leaves out is defaulted."""
        understood = [_configuration_or_excuse(row) for row in requests.to_dict("records")]
        configurations = [one for one in understood if isinstance(one, Configuration)]
        predicted = iter(self._predictions(configurations))
        rows = [next(predicted) if isinstance(one, Configuration) else one for one in understood]
        return pd.DataFrame(rows, columns=ANSWER_COLUMNS)

    def _predictions(self, configurations: list[Configuration]) -> list[dict[str, Any]]:
        if not configurations:
            return []
        columns = [field.name for field in fields_of(Configuration)]
        features = with_derived(pd.DataFrame([one.flat() for one in configurations], columns=columns))
        log_rate = self._booster.predict(encode(features))
        return [
            self._answer(row, float(value))
            for row, value in zip(features.to_dict("records"), log_rate, strict=True)
        ]

    def _answer(self, row: Mapping[Any, Any], log_rate: float) -> dict[str, Any]:
        domain = self._card["domain"]
        if excuse := excuse_for(row, domain):
            return {"predictor": PREDICTOR, "excuse": excuse}
        reason = outside(row, domain)
        inner, outer = (self._card["log_error_quantiles"][level] for level in ("0.5", "0.9"))
        return {
            "target": TARGET,
            "value": math.exp(log_rate),
            "lo50": math.exp(log_rate - inner),
            "hi50": math.exp(log_rate + inner),
            "lo90": math.exp(log_rate - outer),
            "hi90": math.exp(log_rate + outer),
            "predictor": PREDICTOR,
            "in_domain": reason is None,
            "domain_reason": reason,
            "table_version": self._card["table_version"],
        }


ANSWER_COLUMNS = (
    "target", "value", "lo50", "hi50", "lo90", "hi90", "predictor", "in_domain", "domain_reason",
    "table_version", "excuse",
)  # fmt: skip


def _configuration_or_excuse(row: dict[Hashable, Any]) -> Configuration | dict[str, Any]:
    try:
        return Configuration.from_flat(
            {str(name): value for name, value in row.items() if not pd.isna(value)}
        )
    except ValidationError as error:
        problem = error.errors()[0]
        return {"predictor": PREDICTOR, "excuse": f"{problem['loc'][-1]}: {problem['msg']}"}


def _fit(matrix: pd.DataFrame, log_rate: np.ndarray) -> xgboost.XGBRegressor:
    import xgboost

    model = xgboost.XGBRegressor(
        **PARAMETERS, monotone_constraints=monotone_constraints(list(matrix.columns))
    )
    return model.fit(matrix, log_rate)


def _held_out_predictions(matrix: pd.DataFrame, log_rate: np.ndarray, groups: pd.Series) -> np.ndarray:
    from sklearn.model_selection import GroupKFold

    predicted = np.empty_like(log_rate)
    for train, test in GroupKFold(min(FOLDS, groups.nunique())).split(matrix, groups=groups):
        predicted[test] = _fit(matrix.iloc[train], log_rate[train]).predict(matrix.iloc[test])
    return predicted


def _conformal_quantile(errors: np.ndarray, level: float) -> float:
    """The error that a new row stays below with this probability, corrected for the finite sample."""
    rank = min(math.ceil((len(errors) + 1) * level), len(errors))
    return float(np.sort(errors)[rank - 1])


def _scores(predicted: np.ndarray, log_rate: np.ndarray) -> Scores:
    ape = np.abs(np.exp(predicted - log_rate) - 1) * 100
    return Scores(len(ape), float(np.median(ape)), float(ape.mean()), float(np.quantile(ape, 0.9)))
