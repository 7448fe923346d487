"""The main job for real: scheduler, Spark, Great Expectations, MLflow, a prediction; all of it again; and
what its model answers, to commands and behind a server."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from features.lake import Lake
from twin.app.cli import app
from twin.core.settings import Settings
from twin.core.tables import RUNS, SAMPLES, TABLES

# no run of a harness ships with the platform
IN_LAKE = [table for table in TABLES.values() if table.layer != "file" and table not in (SAMPLES, RUNS)]


@pytest.fixture(scope="module")
def home(main_job):
    return main_job / "home"


@pytest.fixture(scope="module")
def printed(main_job):
    return (main_job / "printed").read_text()


@pytest.fixture(scope="module")
def ask(home):
    """The command without a process of its own, whose packages take seconds to load: for questions of which
    another test asks one of the kind in a process."""

    def call(*arguments):
        return CliRunner().invoke(app, [str(one) for one in arguments], env={"TWIN_HOME": str(home)})

    return call


@pytest.fixture
def lake(home, monkeypatch):
    monkeypatch.setenv("TWIN_HOME", str(home))
    return Lake(Settings.from_environment())


@pytest.fixture(scope="module")
def versions(home):
    """Of all tables after the first run: bronze is written twice, by reports and by the harness file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TWIN_HOME", str(home))
        lake = Lake(Settings.from_environment())
    return {table.name: lake.version(table) for table in IN_LAKE}


def test_the_chain_fills_every_table_once(versions, lake):
    assert {name: version for name, version in versions.items() if version} == {"documents": 1, "figures": 1}
    assert lake.written(TABLES["training_set"]).rows > 0


def test_the_summary_tells_times_and_answers(printed):
    assert "broker on Solaris" in printed
    assert "build_features" in printed
    assert "Airflow itself" in printed


def test_the_harness_sample_becomes_training_rows(lake):
    rows = lake.pandas(TABLES["training_set"])
    assert (rows["source_id"] == "harness-cphtestp-openshift").sum() == 8


def test_nothing_of_airflow_is_left_running(home):
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    assert [line for line in listed.splitlines() if str(home) in line] == []


@pytest.mark.long
def test_a_second_run_adds_no_version_and_no_model(versions, twin, lake):
    again = twin("run")
    assert again.returncode == 0, again.stdout + again.stderr
    assert {table.name: lake.version(table) for table in IN_LAKE} == versions
    assert "version 1:" in again.stdout
    assert "✓ build_features (nothing to do)" in again.stdout


def test_the_sample_requests_of_every_system_are_answered(home):
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
def requests(ask, tmp_path_factory):
    """Good ones of two systems, and one that is rejected."""
    path = tmp_path_factory.mktemp("requests") / "requests.jsonl"
    flow, hub = (json.loads(ask("example", one, "--json").stdout) for one in ("message_flow", "rules_hub"))
    rows = [
        flow | {"request_id": "flow"},
        flow | {"cpus": "four"},
        hub | {"request_id": "hub"},
        flow | {"node": "aggregation", "request_id": "misfit"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def batch(twin, requests):
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
def serving(home):
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


def test_own_measurements_move_the_answers(ask, requests, tmp_path):
    hub = json.loads(requests.read_text().splitlines()[2]) | {"machine": "our box", "mhz": 600}
    asked, anchor = tmp_path / "asked.jsonl", tmp_path / "anchor.jsonl"
    asked.write_text(json.dumps(hub) + "\n")
    anchor.write_text(json.dumps(hub | {"queue_managers": 4, "throughput_msgs_per_s": 100.0}) + "\n")
    (plain,) = json.loads(ask("predict", asked, "--json").stdout)["predictions"]
    (moved,) = json.loads(ask("predict", asked, "--anchor", anchor, "--json").stdout)["predictions"]
    assert moved["value"] < 0.7 * plain["value"]
    assert moved["hi90"] / moved["lo90"] < plain["hi90"] / plain["lo90"]
    anchor.write_text(json.dumps(hub) + "\n")
    refused = ask("predict", asked, "--anchor", anchor)
    assert refused.exit_code == 2
    assert "throughput_msgs_per_s" in refused.stderr


def test_an_explanation_names_neighbours_with_their_lines(twin, ask, tmp_path):
    config = tmp_path / "flow.json"
    config.write_text(json.dumps(json.loads(ask("example", "message_flow", "--json").stdout)))
    told = json.loads(twin("explain", config, "--json").stdout)
    assert set(told["predictors"]) == {"nearest", "regression", "analytic", "hybrid"}
    assert told["answer"]["bottleneck"]
    assert told["contributions"]
    figures = [figure for one in told["neighbours"] for figure in one["figures"]]
    assert {"source_id", "line", "printed", "metric"} <= set(figures[0])
    assert {figure["source_id"] for figure in figures} == {"wbimb-v5-solaris"}
    assert "wbimb-v5-solaris line" in ask("explain", config).stdout


@pytest.mark.long
def test_held_out_rows_are_predicted_without_them(twin):
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
def test_bad_questions_to_the_registry_are_exit_code_2(ask, arguments, reason):
    done = ask(*arguments)
    assert done.exit_code == 2
    assert reason in done.stderr


def test_a_model_that_knows_less_does_not_replace_the_champion(twin, ask):
    done = json.loads(twin("train", "--where", "source_id = 'mqsi-v11-solaris'", "--json").stdout)
    assert (done["version"], done["changed"], done["champion"]) == ("2", True, False)
    assert "does not answer" in done["reason"]
    listed = {one["version"]: one for one in json.loads(ask("models", "--json").stdout)}
    assert listed["1"]["aliases"] == ["champion"]
    assert listed["2"]["aliases"] == ["challenger"]
    assert listed["2"]["reason"] == done["reason"]
    # by hand it can be, and the way back is open
    assert ask("models", "promote", "2").exit_code == 0
    assert "version 1 is champion again" in ask("models", "rollback").stdout
