"""Training: a model on the newest tables, its exam, its place in the registry."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from features.lake import Lake
from training.backtest import examined
from training.card import model_card
from training.charts import exam_chart
from training.dataset import Data
from training.hyperparameters import shipped, tuned
from training.model import HYBRID, TwinModel
from training.promotion import verdict
from training.registry import CHAMPION, REASON, Registration, Registry, metrics_of
from twin.core.code import code_digest
from twin.core.configuration import Configuration
from twin.core.prediction import THROUGHPUT
from twin.core.settings import Settings
from twin.core.tables import TRAINING_SET

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion

_FEWEST_ROWS = 10
_LEARNING = ("training", "features", "twin/core", "twin/systems", "twin/queueing", "twin/calibration")


class NothingToLearn(Exception):
    """No measured rate is left to learn from."""


@dataclass(frozen=True)
class Trained:
    version: str
    changed: bool
    champion: bool
    reason: str
    scores: dict[str, float]


def train(
    settings: Settings,
    where: str | None = None,
    tune: bool = False,
    told: Callable[[str], None] = lambda _: None,
) -> Trained:
    """Fit, examine, register as challenger, and promote what is not worse.

    Same data, same code, same parameters: what is registered stands and nothing is done.
    """
    lake, registry = Lake(settings), Registry(settings)
    data = Data.of(lake, where)
    if len(data.ids(THROUGHPUT)) < _FEWEST_ROWS:
        raise NothingToLearn(f"{len(data.ids(THROUGHPUT))} measured rates are too few to learn from")
    if tune:
        told("searching hyper-parameters")
    parameters = tuned(data) if tune else shipped()
    key = _key(data, parameters)
    if (known := registry.with_key(key)) is not None:
        _judge_if_nobody_did(registry, known, lake)
        known = registry.with_key(key)
        assert known is not None
        seen = registry.told(known)
        champion = registry.version_of(CHAMPION)
        first = champion is not None and champion.version == known.version
        return Trained(seen.version, False, first, seen.reason, seen.scores)
    model = TwinModel.fit(data, parameters=parameters, told=told)
    told("examining")
    # what was searched for on all rows is searched for again without each fold
    exam = examined(settings, data, "configuration", None if tune else parameters, code_version())
    expectations = lake.written(TRAINING_SET).expectations or "not checked"
    metrics = metrics_of(exam.scores)
    with tempfile.TemporaryDirectory() as folder:
        chart = Path(folder) / "configuration.png"
        exam_chart(exam.rows, chart)
        registered = registry.register(
            model,
            Registration(
                key=key,
                parameters=parameters
                | {
                    "training_set_version": data.table_version,
                    "training_set_fingerprint": data.fingerprint,
                    "data_digest": data.digest,
                    "code_version": code_version(),
                    "expectations": expectations,
                    "where": where or "",
                    "configurations": len(data.rows),
                    "figures": len(data.figures),
                },
                metrics=metrics,
                exam_rows=exam.rows,
                exam_scores=exam.scores,
                card=model_card(data, model, exam.scores, parameters, expectations, code_version()),
                chart=chart,
                example=example_of(next(iter(data.configurations.values()))),
            ),
        )
    promoted, reason = _judged(registry, registered, exam.rows, expectations)
    return Trained(registered, True, promoted, reason, metrics)


def example_of(configuration: Configuration) -> pd.DataFrame:
    """A measured configuration as a request; the signature has no integers, see there."""
    asked = configuration.flat()
    whole = {name: float(value) for name, value in asked.items() if type(value) is int}
    return pd.DataFrame([{name: value for name, value in asked.items() if value is not None} | whole])


def training_key(settings: Settings) -> str:
    """Identifies what a training of now would be made of."""
    return _key(Data.of(Lake(settings)), shipped())


def _key(data: Data, parameters: dict[str, Any]) -> str:
    parts = (data.digest, code_version(), json.dumps(parameters, sort_keys=True))
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]


def _judge_if_nobody_did(registry: Registry, known: ModelVersion, lake: Lake) -> None:
    """A training that was killed after it had registered its model: all that is missing is the verdict."""
    if REASON not in known.tags:
        expectations = lake.written(TRAINING_SET).expectations or "not checked"
        _judged(registry, str(known.version), registry.exam_rows(known), expectations)


def _judged(
    registry: Registry, registered: str, exam_rows: pd.DataFrame, expectations: str
) -> tuple[bool, str]:
    champion = registry.version_of(CHAMPION)
    before = None if champion is None else registry.exam_rows(champion)
    promoted, reason = verdict(expectations, _answers(before), _answers(exam_rows))
    if promoted:
        registry.promote(registered, reason)
    else:
        registry.remark(registered, reason)
    return promoted, reason


def _answers(rows: pd.DataFrame | None) -> pd.DataFrame | None:
    """What is compared: the hybrid's rates."""
    if rows is None:
        return None
    chosen = rows[(rows["predictor"] == HYBRID) & (rows["target"] == THROUGHPUT)]
    return chosen.set_index("configuration_id")[["source_id", "measured", "value"]]


def headline(scores: dict[str, float]) -> dict[str, float]:
    """What a person wants to know of a model first."""
    prefix = f"{THROUGHPUT}/overall/{HYBRID}/"
    return {name.removeprefix(prefix): value for name, value in scores.items() if name.startswith(prefix)}


def code_version() -> str:
    """Identifies all code that a model is made by."""
    return code_digest(*_LEARNING)
