"""MLflow: training runs, the registered model, its champion."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from features.lake import Lake
from training.regression import PARAMETERS, ThroughputRegression
from twin.core.configuration import Configuration
from twin.core.fields import Field, fields_of
from twin.core.prediction import Excuse, Prediction
from twin.core.settings import PROJECT, Settings
from twin.core.tables import TRAINING_SET

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion
    from mlflow.models import ModelSignature
    from mlflow.tracking import MlflowClient

MODEL = "throughput"
EXPERIMENT = "brokertwin"
CHAMPION = "champion"
_TRAINING_KEY = "training_key"
_REQUEST_FIELDS: tuple[Field, ...] = fields_of(Configuration)


@dataclass(frozen=True)
class Trained:
    version: str
    changed: bool
    scores: dict[str, float]


class NoChampion(Exception):
    """No model has been trained yet."""


def train(settings: Settings) -> Trained:
    """Train on the newest training set and make the result the champion.

    Same data, same code, same parameters: the champion stands and nothing is registered.
    """
    lake = Lake(settings)
    data = lake.written(TRAINING_SET)
    key = _training_key(data.fingerprint)
    client = _client(settings)
    champion = _champion(client)
    if champion is not None and champion.tags.get(_TRAINING_KEY) == key:
        return Trained(str(champion.version), changed=False, scores=_scores_of(client, champion))
    model, scores = ThroughputRegression.fit(lake.pandas(TRAINING_SET, data.version), data.version)
    registered = _register(client, model, asdict(scores), key, data.version)
    return Trained(registered, changed=True, scores=asdict(scores))


def champion_summary(settings: Settings) -> Trained:
    """The champion's version and the scores it was registered with."""
    client = _client(settings)
    champion = _champion_or_raise(client)
    return Trained(str(champion.version), changed=False, scores=_scores_of(client, champion))


class RegisteredPredictor:
    """The champion as a Predictor."""

    def __init__(self, settings: Settings) -> None:
        champion = _champion_or_raise(_client(settings))
        import mlflow

        self.version = str(champion.version)
        self._model = mlflow.pyfunc.load_model(f"models:/{MODEL}/{champion.version}")

    def predict(self, configurations: Sequence[Configuration]) -> list[Prediction | Excuse]:
        if not configurations:
            return []
        answers = self._model.predict(request_frame(configurations))
        return [self._typed(answer) for answer in answers.to_dict("records")]

    def _typed(self, answer: dict[str, Any]) -> Prediction | Excuse:
        known = {name: value for name, value in answer.items() if not pd.isna(value)}
        if "excuse" in known:
            return Excuse.model_validate(known)
        return Prediction.model_validate(known | {"model_version": self.version})


def request_frame(configurations: Sequence[Configuration]) -> pd.DataFrame:
    """Configurations as the registered model's signature wants them; a column that no row has is left out."""
    frame = pd.DataFrame([configuration.flat() for configuration in configurations])
    numbers = [field.name for field in _REQUEST_FIELDS if field.kind in ("integer", "number")]
    return frame.astype(dict.fromkeys(frame.columns.intersection(numbers), "float64")).dropna(
        axis=1, how="all"
    )


def signature() -> ModelSignature:
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    # a missing value must be expressible, so integers travel as doubles
    kinds = {"text": "string", "integer": "double", "number": "double", "flag": "boolean"}
    return ModelSignature(
        Schema(
            [ColSpec(kinds[field.kind], field.name, required=not field.nullable) for field in _REQUEST_FIELDS]
        )
    )


def _register(
    client: MlflowClient, model: ThroughputRegression, scores: dict[str, float], key: str, table_version: int
) -> str:
    import mlflow

    with tempfile.TemporaryDirectory() as folder, mlflow.start_run(run_name=MODEL):
        model.save(Path(folder))
        mlflow.log_params(PARAMETERS | {"training_set_version": table_version})
        mlflow.log_metrics(scores)
        logged = mlflow.pyfunc.log_model(
            name=MODEL,
            python_model=str(Path(__file__).with_name("served_model.py")),
            artifacts={"model": folder},
            signature=signature(),
            pip_requirements=_requirements(),
            registered_model_name=MODEL,
        )
    registered = str(logged.registered_model_version)
    client.set_model_version_tag(MODEL, registered, _TRAINING_KEY, key)
    client.set_registered_model_alias(MODEL, CHAMPION, registered)
    return registered


def _requirements() -> list[str]:
    """What the model's file needs beside this project, which is on no index and has to be installed."""
    return [f"{name}=={version(name)}" for name in ("numpy", "pandas", "pydantic", "xgboost-cpu")]


def _client(settings: Settings) -> MlflowClient:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    import mlflow
    from mlflow.tracking import MlflowClient

    local = settings.home / "mlflow"
    local.mkdir(parents=True, exist_ok=True)
    mlflow.set_tracking_uri(settings.tracking_uri)
    client = MlflowClient()
    if client.get_experiment_by_name(EXPERIMENT) is None:
        # a tracking server chooses its own artifact store; a plain database has none
        own_store = None if settings.tracking_uri.startswith("http") else (local / "artifacts").as_uri()
        client.create_experiment(EXPERIMENT, artifact_location=own_store)
    mlflow.set_experiment(EXPERIMENT)
    return client


def _champion(client: MlflowClient) -> ModelVersion | None:
    from mlflow.exceptions import MlflowException

    try:
        return client.get_model_version_by_alias(MODEL, CHAMPION)
    except MlflowException as error:
        if error.error_code in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            return None
        raise


def _champion_or_raise(client: MlflowClient) -> ModelVersion:
    champion = _champion(client)
    if champion is None:
        raise NoChampion("no model is registered yet: run `make run` first")
    return champion


def _scores_of(client: MlflowClient, model: ModelVersion) -> dict[str, float]:
    return dict(client.get_run(model.run_id).data.metrics)


def _training_key(fingerprint: str) -> str:
    """Identifies what a model is made of: the data, and the code and parameters that learn from it."""
    digest = hashlib.sha256(fingerprint.encode())
    for package in ("training", "features", "twin/core"):
        for path in sorted((PROJECT / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
