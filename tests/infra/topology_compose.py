"""The compose topology as processes: from empty databases to a served champion, through Airflow, on two Spark
workers. `make topology` runs it and records what it saw. It needs PostgreSQL here and Redis' program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from features.lake import Lake
from twin.app.describing import flat_example
from twin.app.local_airflow import Airflow
from twin.app.main_job import DAGS
from twin.core.settings import Settings
from twin.core.tables import TABLES

from ..recording import record
from .compose import INFRA, is_ours
from .processes import Topology

POSTGRES = "postgresql://postgres@127.0.0.1:5432/postgres"
_LIMIT_S = 600.0
_WORKERS = ("spark-worker-1", "spark-worker-2")
_CHAMPION = "/api/2.0/mlflow/registered-models/alias?name=throughput&alias=champion"


@pytest.fixture(scope="module")
def topology(tmp_path_factory) -> Iterator[Topology]:
    psycopg = pytest.importorskip("psycopg", reason="the extra `cluster` is not installed")
    if not shutil.which("redis-server"):
        pytest.skip("there is no redis-server on this machine")
    try:
        server = psycopg.connect(POSTGRES, connect_timeout=3, autocommit=True)
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL to test with: {error}")
    folder = tmp_path_factory.mktemp("topology")
    secrets = folder / "made"
    subprocess.run([INFRA / "new-secrets", secrets], check=True)
    found = Topology(folder, secrets, f"brokertwin_topology_{os.getpid()}")
    with server, ExitStack() as ending:
        for name in ("airflow", "mlflow"):
            ending.callback(server.execute, f"DROP ROLE IF EXISTS {found.database}_{name}")
            ending.callback(server.execute, f"DROP DATABASE IF EXISTS {found.database}_{name} WITH (FORCE)")
        ending.callback(found.end)
        _make_databases(found)
        yield found


def _make_databases(topology: Topology) -> None:
    """By the script that the database's container runs."""
    secrets = topology.folder / "secrets" / "postgres"
    secrets.mkdir()
    for source in ("airflow-api", "tracking"):
        for file in (topology.folder / "secrets" / source).glob("*.env"):
            shutil.copy(file, secrets)
    told = {"SECRETS": str(secrets), "POSTGRES_USER": "postgres", "PGHOST": "127.0.0.1"}
    subprocess.run([INFRA / "postgres" / "databases.sh"], env=dict(os.environ) | told, check=True)


def test_the_chain_ends_in_a_served_champion(topology, monkeypatch):
    began = time.monotonic()
    deadline = began + _LIMIT_S
    topology.start_all(deadline)
    for name in (
        "airflow-scheduler",
        "airflow-dag-processor",
        "airflow-triggerer",
        "airflow-worker",
        *_WORKERS,
    ):
        topology.wait_until_healthy(name, deadline)
    up = time.monotonic()
    version = _champion(topology, _airflow(topology), deadline)
    trained = time.monotonic()
    predicted = _answer_of_serving(topology, deadline)
    curve = _answer_of_page(topology, deadline)
    topology.note_memory()
    open_to_others = topology.open_to_others()
    finished = {name: _finished_tasks(topology, name) for name in _WORKERS}
    rows = _rows(topology, monkeypatch)
    assert version == "1"
    assert predicted["value"] > 0
    assert predicted["lo90"] < predicted["value"] < predicted["hi90"]
    assert curve["points"]
    assert all(finished.values()), "a worker that made nothing"
    assert open_to_others == []
    assert rows["training_set"] > 500
    record(
        "topology",
        "make topology",
        "The compose topology as processes",
        {
            "services started with compose's own commands": len(topology.running),
            "of them ours": sum(is_ours(topology.services[name]) for name in topology.running),
            "Spark workers": len(_WORKERS),
            "tasks finished on the Spark workers": sum(finished.values()),
            "seconds until all are healthy": up - began,
            "seconds from there to a champion": trained - up,
            **{f"rows of {name}": count for name, count in rows.items()},
            "ports beyond loopback": len(open_to_others),
            **{
                f"MB of {name} at most": round(size / 1e6)
                for name, size in topology.peaks.items()
                if size > 0
            },
        },
    )


def _airflow(topology: Topology) -> Airflow:
    password = json.loads((topology.secrets / "airflow-passwords.json").read_text())["admin"]
    url = topology.url("airflow-api")
    answer = httpx.post(
        f"{url}/auth/token", json={"username": "admin", "password": password}, timeout=30, trust_env=False
    ).raise_for_status()
    return Airflow(url, answer.json()["access_token"], (), topology.folder)


def _champion(topology: Topology, airflow: Airflow, deadline: float) -> str:
    """Airflow reads the reports that ship without being asked; the rest follows."""
    airflow.wait_for_dags(DAGS)
    while True:
        topology.require_alive()
        topology.note_memory()
        failed = [run for dag in DAGS for run in airflow.runs(dag) if run["state"] == "failed"]
        assert not failed, [_logs(airflow, run) for run in failed]
        answer = httpx.get(topology.url("tracking", _CHAMPION), timeout=30, trust_env=False)
        if answer.is_success:
            return str(answer.json()["model_version"]["version"])
        assert time.monotonic() < deadline, "no champion in time"
        time.sleep(5)


def _logs(airflow: Airflow, run: dict) -> str:
    tasks = airflow.task_instances(run["dag_id"], run["dag_run_id"])
    told = [
        airflow.log(run["dag_id"], run["dag_run_id"], one["task_id"], one["try_number"], one["map_index"])
        for one in tasks
        if one["state"] == "failed"
    ]
    return "\n".join(told)[-4000:]


def _answer_of_serving(topology: Topology, deadline: float) -> dict:
    asked = {"dataframe_records": [{"request_id": "one"} | flat_example("message_flow")]}
    return _answered(topology.url("serving", "/invocations"), asked, deadline)["predictions"][0]


def _answer_of_page(topology: Topology, deadline: float) -> dict:
    asked = {"configuration": flat_example("message_flow"), "along": "message_bytes"}
    return _answered(topology.url("page", "/api/curve"), asked, deadline)


def _answered(url: str, asked: dict, deadline: float) -> dict:
    """Both look for a new champion every now and then."""
    while not (answer := httpx.post(url, json=asked, timeout=60, trust_env=False)).is_success:
        assert time.monotonic() < deadline, answer.text
        time.sleep(2)
    return answer.json()


def _finished_tasks(topology: Topology, worker: str) -> int:
    """As the executors that this worker started wrote it down."""
    told = (topology.scratch(worker) / "work").glob("app-*/*/stderr")
    return sum(file.read_text().count("Finished task") for file in told)


def _rows(topology: Topology, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    for name in ("TWIN_HOME", "TWIN_LAKE_URI"):
        monkeypatch.setenv(name, topology.environment_of("airflow-worker", name))
    settings = Settings.from_environment()
    assert Path(urlsplit(settings.lake_uri).path).is_relative_to(topology.folder)
    lake = Lake(settings)
    return {name: lake.rows(TABLES[name]) or 0 for name in ("figures", "measurements", "training_set")}
