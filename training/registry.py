"""MLflow: training runs, the registered model, its challenger and its champion."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from filelock import FileLock

from training.model import PREDICTORS, TwinModel
from training.runs import dead_runs, run_tags
from training.tracking_database import ensure_made, file_of, mend
from twin.core.configuration import Configuration
from twin.core.fields import fields_of
from twin.core.prediction import THROUGHPUT
from twin.core.settings import Settings
from twin.core.tables import PREDICTIONS

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion
    from mlflow.models import ModelSignature
    from mlflow.tracking import MlflowClient

MODEL = "throughput"
EXPERIMENT = "brokertwin"
CHAMPION, CHALLENGER = "champion", "challenger"
EXAM_FILE = "exam/configuration.parquet"
SCORES_FILE = "exam/configuration.json"
# on every version: what it was made of, and why it was promoted or not
TRAINING_KEY, REASON, PREVIOUS = "training_key", "reason", "previous_champion"

_NO_MODEL = "no model is registered yet: run `make run` or `twin train` first"


class NoChampion(Exception):
    """No model has been trained yet."""


class NoSuchModel(Exception):
    """There is no version to promote or to go back to."""


@dataclass(frozen=True)
class Registered:
    """A version as `twin models` shows it."""

    version: str
    aliases: tuple[str, ...]
    created: str
    key: str
    reason: str
    scores: dict[str, float]


@dataclass(frozen=True)
class Registration:
    """What goes into the registry with a model."""

    key: str
    parameters: dict[str, Any]
    metrics: dict[str, float]
    exam_rows: pd.DataFrame
    exam_scores: dict[str, Any]
    card: str
    chart: Path | None
    # a request as a client would send it
    example: pd.DataFrame


class Registry:
    def __init__(self, settings: Settings) -> None:
        self._home = settings.home
        self._client = _client(settings)

    def version_of(self, alias: str) -> ModelVersion | None:
        from mlflow.exceptions import MlflowException

        try:
            return self._client.get_model_version_by_alias(MODEL, alias)
        except MlflowException as error:
            if error.error_code in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
                return None
            raise

    def champion(self) -> ModelVersion:
        champion = self.version_of(CHAMPION)
        if champion is None:
            raise NoChampion(_NO_MODEL)
        return champion

    def with_key(self, key: str) -> ModelVersion | None:
        """The newest version that was made of the same data by the same code."""
        return next((one for one in self._versions() if one.tags.get(TRAINING_KEY) == key), None)

    def newest(self) -> ModelVersion | None:
        return next(iter(self._versions()), None)

    def register(self, model: TwinModel, what: Registration) -> str:
        """As the challenger; who becomes champion is decided elsewhere. The model is told its version, so
        only one registers at a time."""
        with FileLock(self._home / "mlflow" / "registering.lock"):
            self.end_dead_runs()
            newest = self.newest()
            expected = str(1 if newest is None else int(newest.version) + 1)
            return self._register(model.registered_as(expected), what)

    def _register(self, model: TwinModel, what: Registration) -> str:
        import mlflow

        with tempfile.TemporaryDirectory() as folder, mlflow.start_run(run_name=MODEL, tags=run_tags()):
            files = Path(folder) / "model"
            files.mkdir()
            model.save(files)
            mlflow.log_params(what.parameters)
            mlflow.log_metrics(what.metrics)
            mlflow.log_text(what.card, "model_card.md")
            mlflow.log_text(json.dumps(what.exam_scores, indent=1), SCORES_FILE)
            rows = Path(folder) / Path(EXAM_FILE).name
            what.exam_rows.to_parquet(rows)
            mlflow.log_artifact(str(rows), str(Path(EXAM_FILE).parent))
            if what.chart is not None:
                mlflow.log_artifact(str(what.chart), "charts")
            logged = mlflow.pyfunc.log_model(
                name=MODEL,
                python_model=str(Path(__file__).with_name("served_model.py")),
                artifacts={"model": str(files)},
                signature=signature(),
                input_example=what.example,
                pip_requirements=_requirements(),
                metadata={"model_card": "model_card.md"},
            )
        # with its key from the first moment: killed right after, it is found and judged by the next training
        made = mlflow.register_model(logged.model_uri, MODEL, tags={TRAINING_KEY: what.key})
        registered = str(made.version)
        self._client.set_registered_model_alias(MODEL, CHALLENGER, registered)
        return registered

    def promote(self, chosen: str, reason: str) -> None:
        """Make a version the champion and remember which one it followed."""
        self._require(chosen)
        champion = self.version_of(CHAMPION)
        if champion is not None and str(champion.version) != chosen:
            self._client.set_model_version_tag(MODEL, chosen, PREVIOUS, str(champion.version))
        self.remark(chosen, reason)
        self._client.set_registered_model_alias(MODEL, CHAMPION, chosen)

    def remark(self, chosen: str, reason: str) -> None:
        self._client.set_model_version_tag(MODEL, chosen, REASON, reason)

    def roll_back(self) -> str:
        """The champion's predecessor takes over again."""
        champion = self.champion()
        previous = champion.tags.get(PREVIOUS)
        if previous is None:
            raise NoSuchModel(f"version {champion.version} followed no other champion")
        self._require(previous)
        self.remark(str(champion.version), f"rolled back to version {previous}")
        self._client.set_registered_model_alias(MODEL, CHAMPION, previous)
        return str(previous)

    def listed(self) -> list[Registered]:
        """All versions, newest first."""
        aliases: dict[str, list[str]] = {}
        for alias in (CHAMPION, CHALLENGER):
            if (one := self.version_of(alias)) is not None:
                aliases.setdefault(str(one.version), []).append(alias)
        return [self._told(one, tuple(aliases.get(str(one.version), ()))) for one in self._versions()]

    def told(self, one: ModelVersion) -> Registered:
        return self._told(one, ())

    def exam_rows(self, one: ModelVersion) -> pd.DataFrame:
        import mlflow

        with tempfile.TemporaryDirectory() as folder:
            path = mlflow.artifacts.download_artifacts(
                run_id=one.run_id, artifact_path=EXAM_FILE, dst_path=folder
            )
            return pd.read_parquet(path)

    def exam_scores(self, one: ModelVersion) -> dict[str, Any]:
        import mlflow

        scores: dict[str, Any] = mlflow.artifacts.load_dict(f"runs:/{one.run_id}/{SCORES_FILE}")
        return scores

    def log_exam(self, name: str, metrics: dict[str, float], files: list[Path]) -> str:
        """A run of its own for an exam."""
        import mlflow

        with mlflow.start_run(run_name=name, tags=run_tags()) as run:
            mlflow.log_metrics(metrics)
            for file in files:
                mlflow.log_artifact(str(file), "exam")
            return str(run.info.run_id)

    def superseded(self, newest: int) -> list[str]:
        """Versions that nobody goes back to: not the newest, not champion, challenger or who would take over
        again."""
        known = [str(one.version) for one in self._versions()]
        named = [one for alias in (CHAMPION, CHALLENGER) if (one := self.version_of(alias)) is not None]
        kept = {str(one.version) for one in named} | {one.tags.get(PREVIOUS) for one in named}
        return [version for version in known[newest:] if version not in kept]

    def let_go(self, version: str) -> None:
        """With its run and its files."""
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        one = self._client.get_model_version(MODEL, version)
        self._client.delete_model_version(MODEL, version)
        # MLflow names a logged model as the source of a version, and its files by the logged model
        logged = self._client.get_logged_model(one.source.rpartition("/")[2])
        get_artifact_repository(logged.artifact_location).delete_artifacts()
        self._client.delete_logged_model(logged.model_id)
        run = self._client.get_run(one.run_id)
        get_artifact_repository(run.info.artifact_uri).delete_artifacts()
        self._client.delete_run(one.run_id)

    def dead_runs(self) -> list[str]:
        return dead_runs(self._client, EXPERIMENT)

    def end_dead_runs(self) -> None:
        for run_id in self.dead_runs():
            self._client.set_terminated(run_id, "KILLED")

    def _told(self, one: ModelVersion, aliases: tuple[str, ...]) -> Registered:
        run = self._client.get_run(one.run_id)
        created = pd.Timestamp(one.creation_timestamp, unit="ms", tz="UTC").isoformat(timespec="seconds")
        return Registered(
            str(one.version),
            aliases,
            created,
            one.tags.get(TRAINING_KEY, ""),
            one.tags.get(REASON, ""),
            dict(run.data.metrics),
        )

    def _versions(self) -> list[ModelVersion]:
        found = self._client.search_model_versions(f"name = '{MODEL}'")
        return sorted(found, key=lambda one: int(one.version), reverse=True)

    def _require(self, chosen: str) -> None:
        if chosen not in {str(one.version) for one in self._versions()}:
            raise NoSuchModel(f"there is no version {chosen} of {MODEL}")


def champion_model(settings: Settings) -> TwinModel:
    if never_used(settings):
        raise NoChampion(_NO_MODEL)
    champion = Registry(settings).champion()
    import mlflow

    served: Any = mlflow.pyfunc.load_model(f"models:/{MODEL}/{champion.version}").unwrap_python_model()
    model: TwinModel = served.model
    # the registry knows best: two homes with one registry may have chosen one number
    return model.registered_as(str(champion.version))


def never_used(settings: Settings) -> bool:
    """Who only asks makes no database."""
    file = file_of(settings.tracking_uri)
    return file is not None and not file.exists()


def signature() -> ModelSignature:
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import AnyType

    # a missing value must be expressible: integers travel as doubles, flags as whatever they are
    kinds = {"text": "string", "integer": "double", "number": "double", "flag": AnyType()}

    def column(name: str, kind: str, required: bool) -> ColSpec:
        return ColSpec(kinds[kind], name, required=required)

    # beside the family everything is checked row by row, where the reason can be told
    asked = [column("request_id", "text", required=False)]
    asked += [
        column(field.name, field.kind, required=field.name == "family") for field in fields_of(Configuration)
    ]
    answered = [column(field.name, field.kind, required=False) for field in PREDICTIONS.fields]
    options = [
        ParamSpec("predictor", "string", PREDICTORS[-1]),
        ParamSpec("target", "string", THROUGHPUT),
    ]
    return ModelSignature(Schema(asked), Schema(answered), ParamSchema(options))


def metrics_of(scores: dict[str, Any]) -> dict[str, float]:
    """An exam's figures as flat metrics."""
    found: dict[str, float] = {}
    for target, of_target in scores.items():
        for part in ("overall", "reports", "macro"):
            named = of_target[part] if part == "reports" else {part: of_target[part]}
            for name, of_predictors in named.items():
                for predictor, figures in of_predictors.items():
                    found |= {
                        f"{target}/{name}/{predictor}/{figure}": float(value)
                        for figure, value in figures.items()
                        if value is not None
                    }
    return found


def _requirements() -> list[str]:
    """What the model's file needs beside this project, which is on no index and has to be installed."""
    needed = ("numba", "numpy", "pandas", "pydantic", "scipy", "xgboost-cpu")
    return [f"{name}=={version(name)}" for name in needed]


def _client(settings: Settings) -> MlflowClient:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    import mlflow

    settings.folder("mlflow")
    _identify(settings)
    mlflow.set_tracking_uri(settings.tracking_uri)
    client = _opened(settings.tracking_uri)
    if client.get_experiment_by_name(EXPERIMENT) is None:
        # a tracking server chooses its own artifact store; a plain database has none
        own_store = None if settings.tracking_uri.startswith("http") else settings.artifacts_uri
        client.create_experiment(EXPERIMENT, artifact_location=own_store)
    mlflow.set_experiment(EXPERIMENT)
    return client


def _opened(uri: str) -> MlflowClient:
    """What was half made by a start that was killed, or by an older release, is mended once."""
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient
    from sqlalchemy.exc import SQLAlchemyError

    ensure_made(uri)
    try:
        return MlflowClient()
    except (MlflowException, SQLAlchemyError):
        if uri.startswith("http"):
            raise
        mend(uri)
        return MlflowClient()


def _identify(settings: Settings) -> None:
    """A tracking server of the same deployment knows the tokens that lie outside every home. Those in a home
    are for its own services: they are not told to whatever server is asked."""
    shared = settings.home not in settings.tokens_file.parents
    if settings.tracking_uri.startswith("http") and shared and settings.tokens_file.is_file():
        tokens = json.loads(settings.tokens_file.read_text())
        os.environ.setdefault("MLFLOW_TRACKING_TOKEN", tokens["operator"])
