"""Killed with kill -9 in the middle of a write, at moments drawn with a seed: the work is done all the same,
and once."""

from __future__ import annotations

import random
import time
from contextlib import suppress

import pandas as pd
import psutil
import pytest

from features.lake import Lake
from twin.app.landing import Landing
from twin.app.local_airflow import running_airflow
from twin.app.main_job import DAGS
from twin.app.services import ServiceFailed
from twin.core.settings import Settings
from twin.core.tables import DOCUMENTS, FIGURES

pytestmark = pytest.mark.long

SEED = 53
ROWS = 40
# a write takes Spark a few seconds from the start of its JVM on
LATEST_S = 6.0


@pytest.fixture(scope="module")
def settings(tmp_path_factory, airflow_patch):
    airflow_patch.setenv("TWIN_HOME", str(tmp_path_factory.mktemp("recovery")))
    airflow_patch.setenv("AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY", "1")
    airflow_patch.setenv("AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT", "20")
    return Settings.from_environment()


def drop(settings, name):
    """A harness file, and the description that names its source."""
    landing = Landing(settings)
    landing.open()
    common = {
        "metric": "throughput_msgs_per_s", "published_at": "2026-01-01", "family": "rules_hub",
        "os": "solaris", "machine": "Sun E4500", "cpus": 4, "product": "MQSI", "version": "1.1",
        "queue_managers": 1, "failed_over": "false", "message_bytes": 1024, "persistent": "true",
        "messages_per_commit": 1,
    }  # fmt: skip
    rows = pd.DataFrame([common | {"value": 100 + at, "rules_engines": at + 1} for at in range(ROWS)])
    (landing.inbox / f"{name}.csv.yaml").write_text(f"source: {name}\n")
    rows.to_csv(landing.inbox / f"{name}.csv", index=False)


def descendant(word, since, timeout_s=90):
    """Of this process, with a word in its command line, once there is one; other tests may have their own."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                if word in " ".join(process.cmdline()) and process.create_time() > since:
                    return process
        time.sleep(0.1)
    raise AssertionError(f"no process like {word}")


def settled(airflow, settings, dag_id="ingest_harness", timeout_s=180):
    """Waits until all runs of a DAG have succeeded and nothing waits."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        states = [run["state"] for run in airflow.runs(dag_id)]
        if set(states) == {"success"} and not Landing(settings).counts()["waiting"]:
            return
        assert "failed" not in states
        time.sleep(1)
    raise AssertionError(f"{dag_id}: {states}, {Landing(settings).counts()}")


def only_harness_files(airflow, settings):
    """The reports that ship are read first; what is built of figures is another matter and takes minutes."""
    airflow.wait_for_dags(DAGS)
    airflow._http.patch("/dags/build_features", json={"is_paused": True}).raise_for_status()
    settled(airflow, settings, "ingest_reports")


def kill_while_writing(victim, moment, since):
    jvm = descendant("SparkSubmit", since)
    process = {
        "spark": jvm,
        "task": psutil.Process(jvm.ppid()),
        "scheduler": descendant("airflow scheduler", since),
    }[victim]
    time.sleep(moment)
    process.kill()


def test_every_row_arrives_once_whatever_is_killed(settings):
    moments, began = random.Random(SEED), time.time()
    expected = set()
    with running_airflow(settings) as airflow:
        only_harness_files(airflow, settings)
        shipped = len(Lake(settings).pandas(FIGURES))
        for victim in ("spark", "task"):
            drop(settings, victim)
            expected.add(f"harness-{victim}")
            kill_while_writing(victim, moments.uniform(0, LATEST_S), began)
            settled(airflow, settings)
        drop(settings, "scheduler")
        expected.add("harness-scheduler")
        kill_while_writing("scheduler", moments.uniform(0, LATEST_S), began)
        with pytest.raises(ServiceFailed, match="scheduler"):
            settled(airflow, settings)
    with running_airflow(settings) as airflow:
        settled(airflow, settings)
    lake = Lake(settings)
    figures, documents = lake.pandas(FIGURES), lake.pandas(DOCUMENTS)
    assert figures["figure_id"].is_unique
    assert len(figures) == shipped + len(expected) * ROWS
    ours = figures[figures["source_id"].isin(expected)]
    assert ours.groupby("source_id").size().to_dict() == dict.fromkeys(expected, ROWS)
    assert documents["source_id"].is_unique
    assert expected <= set(documents["source_id"])
    processed = {path.name for path in Landing(settings).processed.glob("*.csv")}
    assert processed == {"spark.csv", "task.csv", "scheduler.csv"}
