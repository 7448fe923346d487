"""The main job for real: scheduler, Spark, Great Expectations, MLflow, a prediction; and all of it again."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from features.lake import Lake
from twin.core.settings import Settings
from twin.core.tables import TABLES

IN_LAKE = [table for table in TABLES.values() if table.layer != "file"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("end-to-end")


@pytest.fixture(scope="module")
def twin(home):
    # Airflow settings of this test process must not reach the one under test
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    environment |= {"TWIN_HOME": str(home)}

    def call(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "twin.app", *map(str, arguments)],
            env=environment, capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip

    return call


@pytest.fixture(scope="module")
def first_run(twin):
    done = twin("run")
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture
def lake(home, monkeypatch):
    monkeypatch.setenv("TWIN_HOME", str(home))
    return Lake(Settings.from_environment())


def test_the_chain_fills_every_table(first_run, lake):
    assert {table.name: lake.version(table) for table in IN_LAKE} == {table.name: 0 for table in IN_LAKE}
    assert lake.written(TABLES["training_set"]).rows > 0
    assert "message_flow" in first_run.stdout


def test_nothing_of_airflow_is_left_running(first_run, home):
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    assert [line for line in listed.splitlines() if str(home) in line] == []


def test_a_second_run_adds_no_version_and_no_model(first_run, twin, lake):
    again = twin("run")
    assert again.returncode == 0, again.stdout + again.stderr
    assert {lake.version(table) for table in IN_LAKE} == {0}
    assert "version 1:" in again.stdout


def test_a_batch_is_answered_from_the_registry(first_run, twin, tmp_path):
    requests = tmp_path / "requests.jsonl"
    good = json.loads(twin("example", "message_flow", "--json").stdout)
    rows = [
        good | {"request_id": "good"},
        good | {"cpus": "four"},
        good | {"os": "zos", "request_id": "unseen"},
    ]
    requests.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = twin("predict", requests, "--json")
    assert done.returncode == 2
    answer = json.loads(done.stdout)
    predicted, excused = answer["predictions"]
    assert predicted["lo90"] < predicted["value"] < predicted["hi90"]
    assert excused["excuse"] == "no measurement has os = zos"
    assert [(one["row"], one["field"]) for one in answer["rejects"]] == [(2, "cpus")]
