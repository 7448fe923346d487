"""The DAG files: thin, importable without heavy packages, connected by assets, and run by the same rules."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from twin.app.main_job import DAGS
from twin.core.settings import PROJECT

HEAVY = ("pyspark", "mlflow", "great_expectations", "xgboost", "pandas")


@pytest.fixture(scope="module")
def dag_bag(_home):
    from airflow.dag_processing.dagbag import DagBag
    from airflow.utils.db import initdb

    initdb()
    return DagBag(PROJECT / "dags")


@pytest.fixture
def tasks(dag_bag):
    return [task for dag in dag_bag.dags.values() for task in dag.tasks]


def awaited(dag):
    # time alone starts what waits for no asset
    condition = dag.timetable.asset_condition
    return {asset.name for asset in condition.objects} if condition else set()


def test_every_dag_file_imports(dag_bag):
    assert dag_bag.import_errors == {}
    assert sorted(dag_bag.dags) == sorted(DAGS)


def test_a_dag_file_imports_nothing_heavy():
    code = (
        f"import dags.{', dags.'.join(DAGS)}, sys; print([name for name in {HEAVY} if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.splitlines()[-1] == "[]"


def test_what_a_dag_waits_for_is_left_by_another_or_watched(dag_bag, tasks):
    from dags import assets

    left = {outlet.name for task in tasks for outlet in task.outlets}
    watched = {one.name for one in vars(assets).values() if isinstance(one, assets.Asset) and one.watchers}
    for dag in dag_bag.dags.values():
        assert awaited(dag) <= left | watched, dag.dag_id
    assert watched == {"waiting_documents", "waiting_harness_files", "waiting_runs", "waiting_requests"}


def test_documents_lead_to_answers(dag_bag):
    """From what lands, following assets, every DAG is reached."""
    reached, known = set(), {"waiting_documents"}
    while fresh := {
        one.dag_id for one in dag_bag.dags.values() if awaited(one) & known and one.dag_id not in reached
    }:
        reached |= fresh
        known |= {outlet.name for one in fresh for task in dag_bag.dags[one].tasks for outlet in task.outlets}
    assert reached == set(DAGS) - {"ingest_harness", "ingest_runs", "sync_live", "tidy_home"}
    assert "answers" in known


@pytest.mark.parametrize(
    ("dag_id", "when"),
    [
        ("ingest_reports", "At 01:00"),
        ("ingest_harness", "At 30 minutes past the hour"),
        ("ingest_runs", "At 45 minutes past the hour"),
        ("train_models", "At 03:00"),
        ("quality_report", "At 02:00"),
    ],
)
def test_time_starts_what_has_to_happen_in_any_case(dag_bag, dag_id, when):
    from airflow.serialization.encoders import coerce_to_core_timetable

    timetable = coerce_to_core_timetable(dag_bag.dags[dag_id].timetable)
    assert timetable.description == f"Triggered by assets or {when}"


@pytest.mark.parametrize(
    ("dag_id", "when"),
    [
        # as the settings name it
        ("sync_live", "At 15 minutes past the hour"),
        ("tidy_home", "At 04:00, only on Sunday"),
    ],
)
def test_the_clock_alone_starts_what_no_data_calls_for(dag_bag, dag_id, when):
    from airflow.serialization.encoders import coerce_to_core_timetable

    timetable = coerce_to_core_timetable(dag_bag.dags[dag_id].timetable)
    assert timetable.description == when


def test_without_a_broker_to_watch_there_is_nothing_to_do(settings):
    from twin.app.pipeline import NothingToDo, sync_live

    with pytest.raises(NothingToDo, match="TWIN_SYNC_BROKERS names no broker"):
        sync_live(settings)


def test_a_home_with_nothing_in_it_is_tidied_without_complaint_and_noted(settings):
    from twin.app.journal import journal_file
    from twin.app.pipeline import tidy_home

    told = tidy_home(settings)
    assert told["versions_let_go"] == told["models_let_go"] == 0
    (line,) = journal_file(settings).read_text().splitlines()
    assert json.loads(line)["step"] == "tidy_home"


def test_every_dag_tells_an_operator_what_to_do(dag_bag):
    for dag in dag_bag.dags.values():
        assert "When it fails" in dag.doc_md


def test_every_task_is_tried_again_later_and_ends_in_time(tasks):
    for task in tasks:
        assert task.retries == 3
        assert task.retry_exponential_backoff
        assert task.execution_timeout is not None
        assert task.on_failure_callback


def test_at_most_one_task_of_a_run_uses_spark_and_one_at_a_time(dag_bag):
    for dag in dag_bag.dags.values():
        spark = [task for task in dag.tasks if task.pool == "spark"]
        assert len(spark) <= 1
        assert not any(task.is_mapped for task in spark)
        assert dag.max_active_runs == 1


def test_files_are_read_one_by_one(dag_bag):
    for dag_id in ("ingest_reports", "ingest_harness"):
        assert [task.task_id for task in dag_bag.dags[dag_id].tasks if task.is_mapped] == ["read"]


def test_a_failure_is_written_down_and_told(settings, monkeypatch):
    import httpx

    from twin.app.notifying import FailureNotifier

    class Task:
        dag_id, run_id, task_id, map_index = "ingest_reports", "manual", "read", 2

    told = []

    def post(address, json, timeout):
        told.append((address, json))
        raise httpx.ConnectError("nobody listens")

    monkeypatch.setenv("TWIN_WEBHOOK_URL", "http://127.0.0.1:9/hook")
    monkeypatch.setattr(httpx, "post", post)
    FailureNotifier().notify({"ti": Task(), "exception": ValueError("no such table")})
    (line,) = (settings.home / "logs" / "failures.jsonl").read_text().splitlines()
    assert json.loads(line)["error"] == "no such table"
    ((address, message),) = told
    assert address == "http://127.0.0.1:9/hook"
    assert message["text"] == "ingest_reports.read failed: no such table"
