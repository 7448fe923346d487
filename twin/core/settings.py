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
    spark_master: str
    reports: Path | None
    # how long after a training the next one may start by itself
    train_every_h: float = 24.0
    # samples that were measured before are removed; their runs stay
    keep_samples_months: int | None = None
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
            spark_master=os.environ.get("TWIN_SPARK_MASTER") or "local[2]",
            reports=Path(reports) if reports else None,
            train_every_h=float(os.environ.get("TWIN_TRAIN_EVERY_H") or 24),
            keep_samples_months=int(months) if months else None,
            webhook=os.environ.get("TWIN_WEBHOOK_URL") or None,
            sync_brokers=tuple(
                one.strip() for one in os.environ.get("TWIN_SYNC_BROKERS", "").split(",") if one.strip()
            ),
            sync_cron=os.environ.get("TWIN_SYNC_CRON") or "15 * * * *",
            sync_policy=os.environ.get("TWIN_SYNC_POLICY") or "person",
        )
