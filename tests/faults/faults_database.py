"""The database of Airflow and MLflow is killed and comes back, while a DAG runs and a model's figures are
logged."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

import pytest

from features.lake import Lake
from twin.app.landing import Landing
from twin.app.local_airflow import connected
from twin.app.main_job import DAGS
from twin.app.platform import bring_up, take_down
from twin.core.settings import Settings
from twin.core.tables import FIGURES

from ..recording import record
from .homes import ROWS, drop_figures
from .postgresql import NoPostgresql, running_postgresql

AWAY_S = 10.0
FILES = 3
_PATIENCE_S = 300.0


@pytest.fixture
def database():
    # the server's own user has to reach the folder
    folder = Path(tempfile.mkdtemp(prefix="twin-postgresql-"))
    try:
        with running_postgresql(folder) as server:
            server.create("airflow")
            server.create("mlflow")
            yield server
    except NoPostgresql as error:
        pytest.skip(str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def settings(database, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AIRFLOW")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TWIN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", database.url("mlflow"))
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", database.url("airflow"))
    monkeypatch.setenv("AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY", "2")
    return Settings.from_environment()


class Logger(threading.Thread):
    """Logs a figure after the other into an MLflow run, and again what was not acknowledged."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        from mlflow.tracking import MlflowClient

        self.client = MlflowClient(url)
        self.run_id = self.client.create_run(self.client.create_experiment("faults")).info.run_id
        self.acknowledged, self.repeated, self.done = 0, 0, threading.Event()

    def run(self) -> None:
        while not self.done.is_set():
            try:
                self.client.log_metric(self.run_id, "figure", self.acknowledged, step=self.acknowledged)
                self.acknowledged += 1
            except Exception:  # whatever the client makes of a server without its database
                self.repeated += 1
                time.sleep(0.2)

    def kept(self) -> set[int]:
        return {one.step for one in self.client.get_metric_history(self.run_id, "figure")}


def until(look, timeout_s=_PATIENCE_S):
    deadline = time.monotonic() + timeout_s
    while not look():
        assert time.monotonic() < deadline
        time.sleep(1)


def test_work_goes_on_after_the_database_was_killed(database, settings, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    state = bring_up(settings, lambda _: None)
    try:
        urls = {one.name: one.url for one in state.services}
        airflow = connected(settings, urls["api-server"])
        airflow.wait_for_dags(DAGS)
        logger = Logger(urls["mlflow"])
        logger.start()
        sources = {drop_figures(settings, number) for number in range(FILES)}
        until(lambda: any(run["state"] == "running" for run in airflow.runs("ingest_harness")), 90)
        before = logger.acknowledged
        database.stop()
        time.sleep(AWAY_S)
        database.start()
        back = time.monotonic()
        until(lambda: logger.acknowledged > before + 10)
        logging_again = time.monotonic() - back
        until(lambda: not Landing(settings).counts()["waiting"])
        until(lambda: {run["state"] for run in _runs(airflow)} <= {"success", "failed"})
        failed = sum(run["state"] == "failed" for run in airflow.runs("ingest_harness"))
        logger.done.set()
        logger.join()
        kept = logger.kept()
    finally:
        take_down(settings)
    figures = Lake(settings).pandas(FIGURES)
    ours = figures[figures["source_id"].isin(sources)]
    lost = len(set(range(logger.acknowledged)) - kept)
    record(
        "database",
        "make faults",
        "The database of Airflow and MLflow killed and started again",
        {
            "seconds without it": AWAY_S,
            "figures that MLflow acknowledged": logger.acknowledged,
            "of them lost": lost,
            "calls that were repeated": logger.repeated,
            "seconds until MLflow answered again": logging_again,
            "DAG runs that failed": failed,
            "rows lost": FILES * ROWS - len(ours),
            "rows twice": int(figures.duplicated("figure_id").sum()),
        },
    )
    assert (lost, failed) == (0, 0)
    assert len(ours) == FILES * ROWS
    assert figures["figure_id"].is_unique


def _runs(airflow):
    """Airflow's server may itself have lost its connections."""
    try:
        return airflow.runs("ingest_harness")
    except Exception as error:
        return [{"state": str(error)}]
