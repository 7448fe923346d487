"""The same DAGs where one machine is not enough: metadata in PostgreSQL, tasks handed to a Celery worker."""

from __future__ import annotations

import os
import time

import pytest

from features.lake import Lake
from twin.app.local_airflow import running_airflow
from twin.core.settings import PROJECT
from twin.core.tables import TABLES

pytestmark = pytest.mark.long

POSTGRES = "postgres@127.0.0.1:5432"
REDIS = "redis://127.0.0.1:6379"


@pytest.fixture
def metadata():
    """An empty database of the test's own."""
    psycopg = pytest.importorskip("psycopg", reason="the extra `cluster` is not installed")
    try:
        server = psycopg.connect(f"postgresql://{POSTGRES}/postgres", connect_timeout=3)
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL to test with: {error}")
    with server:
        server.autocommit = True
        name = f"brokertwin_test_{os.getpid()}"
        server.execute(f"CREATE DATABASE {name}")
        yield f"{POSTGRES}/{name}"
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def broker():
    """A number of Redis's that nobody uses."""
    redis = pytest.importorskip("redis", reason="the extra `cluster` is not installed")
    try:
        for number in range(15, 0, -1):
            with redis.Redis.from_url(f"{REDIS}/{number}", socket_timeout=3) as client:
                if client.dbsize() == 0:
                    yield f"{REDIS}/{number}"
                    client.flushdb()
                    return
    except redis.ConnectionError as error:
        pytest.skip(f"no Redis to test with: {error}")
    pytest.skip("every database of Redis is in use")


def test_a_dag_runs_on_a_celery_worker_with_its_metadata_in_postgresql(
    settings, metadata, broker, tmp_path, monkeypatch
):
    for name in [name for name in os.environ if name.startswith("AIRFLOW")]:
        monkeypatch.delenv(name)
    # one DAG alone and only when asked, so that nothing else starts Spark meanwhile
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "ingest_reports.py").symlink_to(PROJECT / "dags" / "ingest_reports.py")
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(dags))
    monkeypatch.setenv("AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE", "False")
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"postgresql://{metadata}")
    monkeypatch.setenv("AIRFLOW__CELERY__BROKER_URL", broker)
    with running_airflow(settings) as airflow:
        airflow.wait_for_dags(("ingest_reports",))
        run_id = airflow.trigger("ingest_reports")
        deadline = time.monotonic() + 120
        while (state := airflow.run("ingest_reports", run_id)["state"]) in ("queued", "running"):
            assert time.monotonic() < deadline, state
            time.sleep(1)
        assert state == "success"
        done = [one for one in airflow.task_instances("ingest_reports", run_id) if one["state"] == "success"]
        worker_log = (airflow.logs / "worker.log").read_text()
    assert "write" in {one["task_id"] for one in done}
    assert all(one["id"] in worker_log for one in done)
    assert Lake(settings).version(TABLES["figures"]) == 0
    # nothing went into an embedded database
    assert not (settings.home / "airflow" / "airflow.db").exists()
