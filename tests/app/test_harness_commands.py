"""`twin harness` as a user has it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from twin.app.cli import app
from twin.app.landing import Landing
from twin.sources.harness.runs import read_runs


@pytest.fixture
def twin(settings):
    def call(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return call


def test_experiments_are_listed_with_where_they_come_from(twin):
    listed = json.loads(twin("harness", "list", "--json").stdout)
    hub = next(one for one in listed if one["name"] == "hub")
    assert hub["after"] == "mqsi-v11-solaris"
    assert hub["points_standard"] == 12


def test_results_land_in_the_inbox_as_runs(twin, settings):
    done = twin("harness", "run", "put_get", "--scale", "tiny")
    assert done.exit_code == 0, done.output
    landing = Landing(settings)
    (name,) = [path.name for path in landing.inbox.iterdir()]
    # so old that nobody could be writing it any more
    os.utime(landing.inbox / name, (0, 0))
    assert landing.waiting("runs") == [name]
    assert len(read_runs(landing.inbox / name).runs) == 2
    assert list((settings.home / "harness").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("no_such_thing",), "'no_such_thing' is no experiment"),
        (("put_get", "--broker", "kafka"), "'kafka' is no broker"),
        (("put_get", "--scale", "huge"), "'huge' is no scale"),
        (("content_routing", "--broker", "nats"), "content_routing runs on rabbitmq only"),
    ],
)
def test_what_is_not_known_is_told(twin, arguments, said):
    done = twin("harness", "run", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_an_absent_broker_is_told_and_leaves_nothing(twin, settings):
    done = twin("harness", "run", "put_get", "--broker", "nats=nats://127.0.0.1:1")
    assert done.exit_code == 1
    assert "NATS does not answer at 127.0.0.1:1" in done.stderr
    assert not (settings.home / "inbox").exists()


def test_a_password_is_never_printed(twin):
    done = twin("harness", "run", "put_get", "--broker", "rabbitmq=amqp://guest:topsecret@127.0.0.1:5672/")
    assert done.exit_code == 1
    assert "topsecret" not in done.output


def test_files_of_others_are_refused(twin, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text('{"family": "point_to_point"}\n')
    done = twin("harness", "exam", other)
    assert done.exit_code == 2
    assert "other.jsonl" in done.stderr
    assert twin("harness", "compare", tmp_path / "absent.jsonl").exit_code == 2


def test_comparing_needs_a_champion(twin, tmp_path):
    assert (
        twin("harness", "run", "window", "--scale", "tiny", "--out", tmp_path / "runs.jsonl").exit_code == 0
    )
    done = twin("harness", "compare", tmp_path / "runs.jsonl")
    assert done.exit_code == 1
    assert "no model is registered yet" in done.stderr


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda one: one.name)
def test_an_ended_run_keeps_what_it_has_and_leaves_no_process(tmp_path, sent, started_for):
    home, out = tmp_path / "home", tmp_path / "runs.jsonl"
    run = subprocess.Popen(
        [sys.executable, "-m", "twin.app", "harness", "run", "nodes", "hub", "--quick", "--out", str(out)],
        env=os.environ | {"TWIN_HOME": str(home)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until and not (out.exists() and out.read_text().count('"run"') >= 2):
            time.sleep(0.1)
        # in the middle of the third point, or near it
        time.sleep(0.7)
        run.send_signal(sent)
        run.wait(30)
    finally:
        run.kill()
        run.communicate()
    if sent == signal.SIGINT:
        assert run.returncode == 130
    until = time.monotonic() + 15
    while started_for(home) and time.monotonic() < until:
        time.sleep(0.2)
    assert started_for(home) == []
    finished = read_runs(out)
    assert len(finished.runs) >= 2
    assert finished.runs[0]["problem"] is None
    assert finished.runs[0]["unread_lines"] == 0
