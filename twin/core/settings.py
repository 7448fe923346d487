"""Where things live. Every address can be moved by an environment variable; nothing else changes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Settings:
    home: Path
    lake_uri: str
    tracking_uri: str
    # where MLflow keeps files: here, or in an object store that several machines see
    artifacts_uri: str
    spark_master: str
    reports: Path | None
    # the two tokens that are asked for where others can ask; in the home unless a deployment shares them
    tokens_file: Path
    # where page, tracking and serving listen: on this machine alone unless told otherwise
    host: str = "127.0.0.1"
    # how long after a training the next one may start by itself
    train_every_h: float = 24.0
    # samples that were measured before are removed; their runs stay
    keep_samples_months: int | None = None
    # versions of tables that are older are let go, but not so many of the newest; and models so far back
    keep_version_days: int = 90
    keep_versions: int = 10
    keep_models: int = 10
    # is told of failures
    webhook: str | None = None
    # live brokers that the twin is kept in step with: names, or name=address; when, and who approves
    sync_brokers: tuple[str, ...] = ()
    sync_cron: str = "15 * * * *"
    sync_policy: str = "person"

    @classmethod
    def from_environment(cls) -> Settings:
        home = Path(os.environ.get("TWIN_HOME") or PROJECT / ".twin").absolute()
        months = os.environ.get("TWIN_KEEP_SAMPLES_MONTHS")
        reports = os.environ.get("TWIN_REPORTS_DIR")
        return cls(
            home=home,
            lake_uri=os.environ.get("TWIN_LAKE_URI") or (home / "lake").as_uri(),
            tracking_uri=os.environ.get("MLFLOW_TRACKING_URI")
            or f"sqlite:///{home / 'mlflow' / 'mlflow.db'}",
            artifacts_uri=os.environ.get("TWIN_ARTIFACTS_URI") or (home / "mlflow" / "artifacts").as_uri(),
            spark_master=os.environ.get("TWIN_SPARK_MASTER") or "local[2]",
            reports=Path(reports) if reports else None,
            tokens_file=Path(os.environ.get("TWIN_TOKENS_FILE") or home / "tokens.json").absolute(),
            host=os.environ.get("TWIN_HOST") or "127.0.0.1",
            train_every_h=float(os.environ.get("TWIN_TRAIN_EVERY_H") or 24),
            keep_samples_months=int(months) if months else None,
            keep_version_days=int(os.environ.get("TWIN_KEEP_VERSION_DAYS") or 90),
            keep_versions=int(os.environ.get("TWIN_KEEP_VERSIONS") or 10),
            keep_models=int(os.environ.get("TWIN_KEEP_MODELS") or 10),
            webhook=os.environ.get("TWIN_WEBHOOK_URL") or None,
            sync_brokers=tuple(
                one.strip() for one in os.environ.get("TWIN_SYNC_BROKERS", "").split(",") if one.strip()
            ),
            sync_cron=os.environ.get("TWIN_SYNC_CRON") or "15 * * * *",
            sync_policy=os.environ.get("TWIN_SYNC_POLICY") or "person",
        )

    def folder(self, *names: str) -> Path:
        """A folder of the home, made where it is missing. The home is for its owner alone: it has keys and
        passwords, and whoever can write there decides what is run."""
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = self.home.joinpath(*names)
        folder.mkdir(parents=True, exist_ok=True)
        return folder
