"""Files that land while Airflow is up: a document with bad rows, a harness file with poisoned ones, runs, a
request."""

from __future__ import annotations

import csv
import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from features.lake import Lake
from twin.app.landing import Landing
from twin.app.local_airflow import airflow_environment, running_airflow
from twin.app.main_job import DAGS
from twin.core.configuration import Configuration
from twin.core.fields import fields_of
from twin.core.settings import Settings
from twin.core.tables import TABLES
from twin.sources.shipped import shipped_figures

pytestmark = pytest.mark.long

RECORDING = Path(__file__).parent / "sources" / "recordings" / "mqcph.log"
HUB, PUBSUB = "mqsi-v11-solaris", "mqseries-pubsub-aix"


def with_bad_rows(document, share):
    """The hub's report with so many of its table rows broken: words and negative numbers where a rate or a
    share of idle time stood. Returns its text and the lines."""
    figures = [one for one in shipped_figures(HUB) if one.origin.table_label.startswith("Figure")]
    figures = [one for one in figures if one.origin.source_kind == "table"]
    lines = document.read_text(encoding="utf-8").split("\n")
    rows = sorted({one.origin.line for one in figures})
    bad = sorted(random.Random(30).sample(rows, round(share * len(rows))))
    for at, line in enumerate(bad):
        cells = lines[line - 1].split("\t")
        for one in figures:
            if one.origin.line == line:
                assert cells[one.origin.column_index].strip() == one.origin.printed
                cells[one.origin.column_index] = "lost" if at % 2 else "-7"
        lines[line - 1] = "\t".join(cells)
    return "\n".join(lines), bad


def poisoned_results(lake, path):
    """Every fan-out of the publish/subscribe report once more, ten times as fast as it was measured."""
    columns = [field.name for field in fields_of(Configuration)]
    rows = lake.arrow(TABLES["measurements"], where=f"source_id = '{PUBSUB}' AND metric = 'elapsed_ms'")
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["metric", "value", "published_at", *columns])
        writer.writeheader()
        for row in rows.to_pylist():
            if row["family"] == "fan_out" and row["value"] and row["fact_kind"] == "measurement":
                told = {"metric": "elapsed_ms", "value": row["value"] / 10, "published_at": "2026-01-01"}
                writer.writerow(told | {name: row[name] for name in columns})


@pytest.fixture(scope="module")
def home(reports_dir, main_job):
    """After the main job, which is not run where there is no document to land."""
    return main_job / "copy"


@pytest.fixture(scope="module")
def settings_of_home(home, airflow_patch):
    airflow_patch.setenv("TWIN_HOME", str(home))
    # the first model is minutes old
    airflow_patch.setenv("TWIN_TRAIN_EVERY_H", "0.001")
    return Settings.from_environment()


@pytest.fixture(scope="module")
def airflow(settings_of_home):
    with running_airflow(settings_of_home) as airflow:
        airflow.wait_for_dags(DAGS)
        yield airflow


def settled(airflow, settings, done, timeout_s=600):
    """Waits until something is done and nothing runs any more."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        # of all DAGs at once: six questions every time would keep the server from the tasks
        active = [run for run in airflow.runs("~") if run["state"] in ("queued", "running")]
        if not active and not Landing(settings).counts()["waiting"] and done():
            return
        time.sleep(2)
    raise AssertionError(f"still running: {active}; waiting: {Landing(settings).counts()}")


@pytest.fixture
def lake(settings_of_home):
    return Lake(settings_of_home)


@pytest.fixture(scope="module")
def landed(airflow, settings_of_home, reports_dir, twin):
    """Dropped into the inbox while Airflow is up; what was there before, and the lines that are bad."""
    lake, inbox = Lake(settings_of_home), Landing(settings_of_home).inbox
    before = lake.pandas(TABLES["training_set"])
    text, bad = with_bad_rows(reports_dir / f"{HUB}.txt", 0.3)
    (inbox / "report.txt").write_text(text, encoding="utf-8")
    poisoned_results(lake, inbox / "ours.csv")
    shutil.copy(RECORDING, inbox / "run.log")
    shutil.copy(RECORDING.with_name("archive.yaml"), inbox / "run.log.yaml")
    (inbox / "half.log").write_text("rate=1.00,threads=1\n")
    (inbox / "nonsense.csv").write_text("a,b\n1,2\n")
    (inbox / "ask.jsonl").write_text(twin("example", "rules_hub", "--json").stdout)
    (inbox / "unreadable.parquet").write_bytes(b"no parquet")

    def trained():
        return len(airflow.runs("train_models")) > trainings

    trainings = len(airflow.runs("train_models"))
    settled(airflow, settings_of_home, trained)
    return before, bad


def built(airflow):
    """The newest run that had something to build."""
    for run in airflow.runs("build_features"):
        tasks = airflow.task_instances("build_features", run["dag_run_id"])
        if ("validate_and_derive", "success") in {(task["task_id"], task["state"]) for task in tasks}:
            return run["dag_run_id"]
    raise AssertionError("nothing was built")


def test_what_lands_comes_to_an_answer_by_itself(landed, home):
    (answer,) = [json.loads(line) for line in (home / "answers" / "ask.jsonl").read_text().splitlines()]
    assert answer["lo90"] <= answer["value"] <= answer["hi90"]
    processed = {path.name for path in (home / "processed").iterdir()}
    assert {"report.txt", "ours.csv", "run.log", "run.log.yaml", "ask.jsonl"} <= processed
    assert list((home / "inbox").iterdir()) == []


def test_a_bad_file_fails_alone(landed, airflow, home):
    reasons = {name: (home / "refused" / f"{name}.reason.txt").read_text() for name in
               ("nonsense.csv", "unreadable.parquet")}  # fmt: skip
    assert "no harness format" in reasons["nonsense.csv"]
    assert reasons["unreadable.parquet"].strip()
    states = [
        task["state"]
        for run in airflow.runs("ingest_harness")
        for task in airflow.task_instances("ingest_harness", run["dag_run_id"])
        if task["task_id"] == "read"
    ]
    assert "failed" in states
    failures = [json.loads(line) for line in (home / "logs" / "failures.jsonl").read_text().splitlines()]
    assert any("nonsense.csv" in failure["error"] for failure in failures)


def test_runs_that_land_are_summed_up_and_learned_from(landed, airflow, lake, home):
    runs = lake.pandas(TABLES["runs"])
    assert list(runs["verdict"]) == ["stable", "stable"]
    assert "family: missing" in (home / "refused" / "half.log.reason.txt").read_text()
    told = [
        event["extra"] for event in airflow.asset_events(name_pattern="runs", source_dag_id="ingest_runs")
    ]
    assert [(one["runs"], one["samples"], one["expectations"]) for one in told] == [(2, 28, "passed")]
    learned = lake.pandas(TABLES["training_set"]).query("source_id == 'harness-recordings'")
    assert sorted(learned["throughput_msgs_per_s"]) == sorted(runs["rate_msgs_per_s"])


def test_bad_rows_are_quarantined_and_good_ones_arrive(landed, lake):
    _, bad = landed
    quarantined = lake.pandas(TABLES["quarantine"]).query(f"source_id == '{HUB}'")
    trusted = lake.pandas(TABLES["measurements"]).query(f"source_id == '{HUB}'")
    broken = {one.figure_id for one in shipped_figures(HUB) if one.origin.line in bad}
    assert broken <= set(quarantined["figure_id"])
    assert not set(quarantined["figure_id"]) & set(trusted["figure_id"])
    assert len(quarantined) + len(trusted) == len(shipped_figures(HUB))
    good = {one.origin.line for one in shipped_figures(HUB)} - set(quarantined["line"])
    assert good <= set(trusted["line"])


def test_bad_rows_are_named_on_the_page(landed, home):
    _, bad = landed
    page = (home / "quality" / "index.html").read_text()
    assert all(f'<td class="number">{line}</td>' in page for line in bad)
    assert "nonsense.csv" in page


def test_only_good_rows_are_learned_from(landed, lake):
    before, _ = landed
    after = lake.pandas(TABLES["training_set"])
    rows = {name: table.query(f"source_id == '{HUB}'") for name, table in (("was", before), ("is", after))}
    assert 0 < len(rows["is"]) < len(rows["was"])
    assert after["throughput_msgs_per_s"].dropna().min() > 0
    known = before.set_index("configuration_id")["throughput_msgs_per_s"]
    assert (
        (rows["is"].set_index("configuration_id")["throughput_msgs_per_s"] / known)
        .dropna()
        .between(0.8, 1.25)
        .all()
    )


def test_an_operator_sees_it_on_the_run(landed, airflow):
    _, bad = landed
    run_id = built(airflow)
    log = airflow.log("build_features", run_id, "validate_and_derive")
    assert f"{HUB}: " in log
    assert "figures are in quarantine" in log
    events = airflow.asset_events(source_dag_id="build_features", source_run_id=run_id)
    told = {event["name"]: event["extra"] for event in events}
    assert told["findings"]["sources"][HUB]["quarantined"] >= len(bad)
    assert told["training_set"]["rows"] > 0
    assert told["training_set"]["fingerprint"]


def test_poisoned_figures_do_not_replace_the_champion(landed, twin):
    listed = {one["version"]: one for one in json.loads(twin("models", "--json").stdout)}
    newest = max(listed, key=int)
    assert listed["1"]["aliases"] == ["champion"]
    assert listed[newest]["aliases"] == ["challenger"]
    assert listed[newest]["reason"].startswith(PUBSUB)


def test_a_backfill_gives_the_same_tables(landed, airflow, settings_of_home, lake):
    """And what landed is not replaced by the library."""
    before = {table.name: lake.version(table) for table in TABLES.values() if table.layer != "file"}
    command = "backfill create --dag-id ingest_reports --from-date 2026-11-01 --to-date 2026-11-03"
    port = int(airflow.url.rpartition(":")[2])
    subprocess.run(
        [sys.executable, "-m", "airflow", *command.split()],
        env=airflow_environment(settings_of_home, port), check=True, capture_output=True,
    )  # fmt: skip

    def filled():
        return sum(run["run_type"] == "backfill" for run in airflow.runs("ingest_reports")) == 2

    settled(airflow, settings_of_home, filled)
    states = [run["state"] for run in airflow.runs("ingest_reports") if run["run_type"] == "backfill"]
    assert states == ["success", "success"]
    assert {table.name: lake.version(table) for table in TABLES.values() if table.layer != "file"} == before
