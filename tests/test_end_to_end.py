"""The main job for real: scheduler, Spark, Great Expectations, MLflow, a prediction; all of it again; and
then files that land while Airflow is up: a document with bad rows, a harness file with poisoned ones, a
request."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
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


@pytest.fixture(scope="module")
def versions(first_run, home):
    """Of all tables after the first run: bronze is written twice, by reports and by the harness file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TWIN_HOME", str(home))
        lake = Lake(Settings.from_environment())
    return {table.name: lake.version(table) for table in IN_LAKE}


def test_the_chain_fills_every_table_once(versions, lake):
    assert {name: version for name, version in versions.items() if version} == {"documents": 1, "figures": 1}
    assert lake.written(TABLES["training_set"]).rows > 0


def test_the_summary_tells_times_and_answers(first_run):
    assert "broker on Solaris" in first_run.stdout
    assert "build_features" in first_run.stdout
    assert "Airflow itself" in first_run.stdout


def test_the_harness_sample_becomes_training_rows(first_run, lake):
    rows = lake.pandas(TABLES["training_set"])
    assert (rows["source_id"] == "harness-cphtestp-openshift").sum() == 8


def test_nothing_of_airflow_is_left_running(first_run, home):
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    assert [line for line in listed.splitlines() if str(home) in line] == []


def test_a_second_run_adds_no_version_and_no_model(versions, twin, lake):
    again = twin("run")
    assert again.returncode == 0, again.stdout + again.stderr
    assert {table.name: lake.version(table) for table in IN_LAKE} == versions
    assert "version 1:" in again.stdout
    assert "✓ build_features (nothing to do)" in again.stdout


def test_the_sample_requests_of_every_system_are_answered(first_run, home):
    answers = [json.loads(line) for line in (home / "answers" / "requests.jsonl").read_text().splitlines()]
    systems = {one["request_id"].split(":")[0] for one in answers}
    assert len(systems) == 5
    for one in answers:
        assert one["excuse"] is None
        assert 0 < one["lo90"] <= one["value"] <= one["hi90"]
        assert one["in_domain"] in (True, False)
    offered = [one for one in answers if "offered" in one["request_id"]]
    assert len(offered) == 5


@pytest.fixture(scope="module")
def requests(twin, tmp_path_factory):
    """Good ones of two systems, and one that is rejected."""
    path = tmp_path_factory.mktemp("requests") / "requests.jsonl"
    flow, hub = (json.loads(twin("example", one, "--json").stdout) for one in ("message_flow", "rules_hub"))
    rows = [
        flow | {"request_id": "flow"},
        flow | {"cpus": "four"},
        hub | {"request_id": "hub"},
        flow | {"node": "aggregation", "request_id": "misfit"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def batch(first_run, twin, requests):
    done = twin("predict", requests, "--predictor", "all", "--target", "all", "--json")
    assert done.returncode == 2, done.stderr
    return json.loads(done.stdout)


def test_a_batch_is_answered_from_the_registry(batch):
    assert [(one["row"], one["field"]) for one in batch["rejects"]] == [(2, "cpus")]
    assert len(batch["predictions"]) == 3 * 4 * 2
    rates = {
        (one["request_id"], one["predictor"]): one
        for one in batch["predictions"]
        if one["target"] == "throughput_msgs_per_s"
    }
    for request in ("flow", "hub"):
        for predictor in ("hybrid", "analytic", "regression", "nearest"):
            one = rates[request, predictor]
            assert one["lo90"] <= one["value"] <= one["hi90"]
    assert rates["flow", "hybrid"]["model_version"] == "1"
    assert rates["misfit", "hybrid"]["excuse"].startswith("esql:")


@pytest.fixture(scope="module")
def serving(first_run, home):
    """The champion behind MLflow's own server."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    environment = os.environ | {
        "MLFLOW_TRACKING_URI": f"sqlite:///{home / 'mlflow' / 'mlflow.db'}",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        # the server is started by its bare name
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    command = ["models", "serve", "-m", "models:/throughput@champion", "--env-manager", "local"]
    with (home / "serving.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "mlflow", *command, "-h", "127.0.0.1", "-p", str(port)],
            env=environment, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(120):
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{url}/ping").status_code == 200:
                    break
            time.sleep(0.5)
        yield f"{url}/invocations"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def test_the_server_says_what_a_batch_says(serving, batch, requests):
    rows = [json.loads(line) for line in requests.read_text().splitlines()]
    good = [row for row in rows if row["cpus"] != "four"]
    body = {"dataframe_records": good, "params": {"predictor": "all", "target": "all"}}
    reply = httpx.post(serving, json=body, timeout=60)
    assert reply.status_code == 200, reply.text

    def by_key(predictions):
        return {(one["request_id"], one["predictor"], one["target"]): one for one in predictions}

    served, batched = by_key(reply.json()["predictions"]), by_key(batch["predictions"])
    assert served.keys() == batched.keys()
    for key, one in batched.items():
        for name, value in one.items():
            assert served[key][name] == (
                pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
            )


def test_a_bad_row_is_excused_by_the_server_with_its_field(serving, requests):
    good = json.loads(requests.read_text().splitlines()[0])
    reply = httpx.post(serving, json={"dataframe_records": [good | {"cpus": -1}, good]}, timeout=60)
    bad, fine = reply.json()["predictions"]
    assert bad["excuse"].startswith("cpus:")
    assert fine["value"] > 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{oops", "JSON"),
        ('{"rows": []}', "dataframe_records"),
        ('{"dataframe_records": [{"cpus": 4}]}', "family"),
        ('{"dataframe_records": [{"family": "rules_hub", "cpus": "four"}]}', "cpus"),
        ('{"dataframe_records": [{"family": "rules_hub"}], "params": {"predictor": "oracle"}}', "oracle"),
    ],
)
def test_a_malformed_body_is_a_bad_request_with_the_reason(serving, body, reason):
    reply = httpx.post(serving, content=body, headers={"content-type": "application/json"}, timeout=60)
    assert reply.status_code == 400
    assert reason in reply.text


def test_a_hundred_clients_at_once_are_all_answered(serving, requests):
    good = json.loads(requests.read_text().splitlines()[0])

    def ask(_):
        return httpx.post(serving, json={"dataframe_records": [good]}, timeout=120).status_code

    with ThreadPoolExecutor(100) as clients:
        assert set(clients.map(ask, range(200))) == {200}


def test_own_measurements_move_the_answers(first_run, twin, requests, tmp_path):
    hub = json.loads(requests.read_text().splitlines()[2]) | {"machine": "our box", "mhz": 600}
    asked, anchor = tmp_path / "asked.jsonl", tmp_path / "anchor.jsonl"
    asked.write_text(json.dumps(hub) + "\n")
    anchor.write_text(json.dumps(hub | {"queue_managers": 4, "throughput_msgs_per_s": 100.0}) + "\n")
    (plain,) = json.loads(twin("predict", asked, "--json").stdout)["predictions"]
    (moved,) = json.loads(twin("predict", asked, "--anchor", anchor, "--json").stdout)["predictions"]
    assert moved["value"] < 0.7 * plain["value"]
    assert moved["hi90"] / moved["lo90"] < plain["hi90"] / plain["lo90"]
    anchor.write_text(json.dumps(hub) + "\n")
    refused = twin("predict", asked, "--anchor", anchor)
    assert refused.returncode == 2
    assert "throughput_msgs_per_s" in refused.stderr


def test_an_explanation_names_neighbours_with_their_lines(first_run, twin, requests, tmp_path):
    config = tmp_path / "flow.json"
    config.write_text(json.dumps(json.loads(twin("example", "message_flow", "--json").stdout)))
    told = json.loads(twin("explain", config, "--json").stdout)
    assert set(told["predictors"]) == {"nearest", "regression", "analytic", "hybrid"}
    assert told["answer"]["bottleneck"]
    assert told["contributions"]
    figures = [figure for one in told["neighbours"] for figure in one["figures"]]
    assert {"source_id", "line", "printed", "metric"} <= set(figures[0])
    assert {figure["source_id"] for figure in figures} == {"wbimb-v5-solaris"}
    assert "wbimb-v5-solaris line" in twin("explain", config).stdout


def test_held_out_rows_are_predicted_without_them(first_run, twin):
    where = "source_id = 'mqsi-v11-solaris' AND table_label = 'Figure 9'"
    done = twin("backtest", "--hold-out", where, "--json", "--rows")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    hybrid = told["targets"]["throughput_msgs_per_s"]["overall"]["hybrid"]
    assert hybrid["n"] == 10
    assert hybrid["median_ape"] < 15
    assert {row["configuration_id"] for row in told["rows"]} == {
        row["configuration_id"] for row in told["rows"] if row["predictor"] == "hybrid"
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("backtest",), "either"),
        (("backtest", "--protocol", "luck"), "luck"),
        (("backtest", "--hold-out", "nothing = 1"), "nothing"),
        (("backtest", "--hold-out", "line < 0"), "matches no configuration"),
        (("train", "--where", "line < 0"), "too few"),
        (("models", "promote", "77"), "77"),
    ],
)
def test_bad_questions_to_the_registry_are_exit_code_2(first_run, twin, arguments, reason):
    done = twin(*arguments)
    assert done.returncode == 2
    assert reason in done.stderr


def test_a_model_that_knows_less_does_not_replace_the_champion(first_run, twin):
    done = json.loads(twin("train", "--where", "source_id = 'mqsi-v11-solaris'", "--json").stdout)
    assert (done["version"], done["changed"], done["champion"]) == ("2", True, False)
    assert "does not answer" in done["reason"]
    listed = {one["version"]: one for one in json.loads(twin("models", "--json").stdout)}
    assert listed["1"]["aliases"] == ["champion"]
    assert listed["2"]["aliases"] == ["challenger"]
    assert listed["2"]["reason"] == done["reason"]
    # by hand it can be, and the way back is open
    assert twin("models", "promote", "2").returncode == 0
    assert "version 1 is champion again" in twin("models", "rollback").stdout


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
def settings_of_home(home, airflow_patch):
    airflow_patch.setenv("TWIN_HOME", str(home))
    # the first model is minutes old
    airflow_patch.setenv("TWIN_TRAIN_EVERY_H", "0.001")
    return Settings.from_environment()


@pytest.fixture(scope="module")
def airflow(first_run, settings_of_home):
    with running_airflow(settings_of_home) as airflow:
        airflow.wait_for_dags(DAGS)
        yield airflow


def settled(airflow, settings, done, timeout_s=600):
    """Waits until something is done and nothing runs any more."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        active = [run for dag in DAGS for run in airflow.runs(dag) if run["state"] in ("queued", "running")]
        if not active and not Landing(settings).counts()["waiting"] and done():
            return
        time.sleep(2)
    raise AssertionError(f"still running: {active}; waiting: {Landing(settings).counts()}")


@pytest.fixture(scope="module")
def landed(airflow, settings_of_home, reports_dir, twin):
    """Dropped into the inbox while Airflow is up; what was there before, and the lines that are bad."""
    lake, inbox = Lake(settings_of_home), Landing(settings_of_home).inbox
    before = lake.pandas(TABLES["training_set"])
    text, bad = with_bad_rows(reports_dir / f"{HUB}.txt", 0.3)
    (inbox / "report.txt").write_text(text, encoding="utf-8")
    poisoned_results(lake, inbox / "ours.csv")
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
    assert {"report.txt", "ours.csv", "ask.jsonl"} <= processed
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
    before = {table.name: lake.version(table) for table in IN_LAKE}
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
    assert {table.name: lake.version(table) for table in IN_LAKE} == before
