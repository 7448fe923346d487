"""The platform that stays up, for real: brought up once on a fresh home, looked at, hurt, taken down."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx
import psutil
import pytest

from twin.app.platform import PlatformState, ServiceState, read_state, take_down
from twin.app.services import ProcessId, Service, end_families, family, free_port, start
from twin.app.supervisor import MOST_RESTARTS, Watched
from twin.core.settings import Settings

# any model will do to see it served
MODEL = """
import mlflow

class Echo(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return model_input

mlflow.models.set_model(Echo())
"""
REGISTER = """
import sys
from training.registry import CHAMPION, MODEL, Registry
from twin.core.settings import Settings
import mlflow

Registry(Settings.from_environment())
made = mlflow.pyfunc.log_model(
    name=MODEL, python_model=sys.argv[1], pip_requirements=[], registered_model_name=MODEL
)
mlflow.MlflowClient().set_registered_model_alias(MODEL, CHAMPION, made.registered_model_version)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("platform")


@pytest.fixture(scope="module")
def environment(home):
    # Airflow settings of this test process must not reach the one under test
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    # and no DAG has to run
    return clean | {"TWIN_HOME": str(home), "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True"}


@pytest.fixture(scope="module")
def twin(environment):
    def call(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "twin.app", *arguments],
            env=environment, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip

    return call


@pytest.fixture(scope="module")
def taken_port():
    """Somebody else has a port that the platform would like."""
    with socket.socket() as other:
        port = free_port(8080)
        other.bind(("127.0.0.1", port))
        other.listen()
        yield port


@pytest.fixture(scope="module")
def up(twin, home, taken_port):
    done = twin("up")
    try:
        assert done.returncode == 0, done.stdout + done.stderr
        yield done
    finally:
        twin("down")


@pytest.fixture
def services(twin, up):
    def look():
        return {one["name"]: one for one in json.loads(twin("status", "--json").stdout)["services"]}

    return look


def eventually(condition, within_s=60):
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.5)


def processes_of(settings):
    return [
        one for service in read_state(settings).services if service.process for one in family(service.process)
    ]


@pytest.fixture
def settings_of_home(home, monkeypatch):
    monkeypatch.setenv("TWIN_HOME", str(home))
    return Settings.from_environment()


def test_all_services_are_healthy_and_serving_waits_for_a_model(up, twin, services):
    assert twin("status").returncode == 0
    told = services()
    assert {name for name, one in told.items() if one["state"] == "healthy"} == {
        "api-server", "scheduler", "dag-processor", "triggerer", "mlflow", "page",
    }  # fmt: skip
    assert told["serving"]["state"] == "waiting"
    assert "for a model" in told["serving"]["note"]


def test_the_pages_answer(services):
    told = services()
    assert "Airflow" in httpx.get(told["api-server"]["url"]).text
    assert "MLflow" in httpx.get(told["mlflow"]["url"]).text
    assert "brokertwin" in httpx.get(told["page"]["url"]).text
    linked = httpx.get(f"{told['page']['url']}/api/home").json()["links"]
    assert (linked["airflow"], linked["mlflow"]) == (told["api-server"]["url"], told["mlflow"]["url"])


def test_the_next_port_is_taken_and_told(up, services, taken_port):
    assert f"port {taken_port} is taken" in services()["api-server"]["note"]


def test_the_password_is_shown_once(up, twin, home):
    file = home / "airflow" / "passwords.json"
    assert file.stat().st_mode & 0o777 == 0o600
    password = json.loads(file.read_text())["admin"]
    assert password in up.stdout
    assert password not in twin("up").stdout
    assert password not in "".join(log.read_text() for log in (home / "logs").glob("*.log"))


def test_only_loopback_is_listened_on(up, settings_of_home):
    listening = {
        connection.laddr
        for process in processes_of(settings_of_home)
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert len(listening) >= 2
    assert {place.ip for place in listening} == {"127.0.0.1"}


def test_a_second_up_says_so(up, twin):
    again = twin("up")
    assert again.returncode == 0
    assert "up already" in again.stdout


def test_the_main_job_is_refused_meanwhile(up, twin):
    refused = twin("run")
    assert refused.returncode == 1
    assert "`twin down`" in refused.stderr


def test_a_champion_is_served_and_a_killed_service_comes_back(services, environment, tmp_path):
    model = tmp_path / "model.py"
    model.write_text(MODEL)
    subprocess.run(
        [sys.executable, "-c", REGISTER, str(model)], env=environment, check=True, capture_output=True
    )
    before = services()["mlflow"]
    os.kill(before["pid"], signal.SIGKILL)

    def is_back():
        now = services()["mlflow"]
        return now["state"] == "healthy" and now["pid"] != before["pid"]

    eventually(is_back)
    eventually(lambda: services()["serving"]["state"] == "healthy")
    served = services()["serving"]
    assert served["note"] == "version 1"
    asked = httpx.post(served["url"], json={"dataframe_records": [{"a": 1}]})
    assert asked.json() == {"predictions": [{"a": 1}]}


def test_down_leaves_no_process(up, twin, settings_of_home):
    processes = processes_of(settings_of_home)
    assert len(processes) > 6
    done = twin("down")
    assert done.returncode == 0, done.stderr
    assert [one for one in processes if one.is_running()] == []
    assert twin("status").returncode == 1
    assert "not up" in twin("status").stdout
    assert "was not up" in twin("down").stdout


def sleeping(tmp_path):
    """A service that started a process with a session of its own, as Airflow's tasks have."""
    script = (
        "import subprocess, time; subprocess.Popen(['sleep', '60'], start_new_session=True); time.sleep(60)"
    )
    running = start(Service("sleeper", (sys.executable, "-c", script), os.environ, tmp_path / "log"))
    eventually(lambda: len(family(running.id)) == 2)
    return running


def test_what_a_killed_supervisor_left_is_ended(settings, tmp_path):
    running = sleeping(tmp_path)
    processes = family(running.id)
    dead = ProcessId(os.getpid(), 0.0)
    left = ServiceState(name="sleeper", state="healthy", process=running.id)
    state = PlatformState(supervisor=dead, started_at=datetime.now(UTC), services=(left,))
    state.write(settings)
    assert not read_state(settings).is_up
    assert not read_state(settings).well
    assert take_down(settings)
    assert [one for one in processes if one.is_running()] == []
    assert read_state(settings) is None


def test_what_only_got_the_same_number_is_left_alone(settings, tmp_path):
    running = sleeping(tmp_path)
    try:
        end_families([ProcessId(running.id.pid, running.id.created - 3600)])
        assert running.id.alive
    finally:
        end_families([running.id])


def test_a_service_that_keeps_ending_is_started_later_each_time_and_then_given_up():
    one = Watched("flaky", Service("flaky", (), {}, Path("flaky.log")))
    delays = []
    for _ in range(MOST_RESTARTS):
        one.ended(now=100.0)
        delays.append(one.due - 100.0)
    assert delays == [1, 2, 4, 8, 16]
    one.ended(now=100.0)
    assert (one.state, one.due) == ("failed", None)


def test_endings_long_ago_are_forgiven():
    one = Watched("old", Service("old", (), {}, Path("old.log")))
    for hour in range(20):
        one.ended(now=3600.0 * hour)
    assert one.state == "restarting"
