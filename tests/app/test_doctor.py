"""Whatever a person can fix is named with what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from features.lake import Lake
from twin.app.cli import app
from twin.app.doctor import home as home_checks
from twin.app.doctor import machine, platform
from twin.app.doctor.checkup import checkup
from twin.core.tables import FINDINGS

from ..a_finding import ROW


@pytest.fixture
def home(settings, commit, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    settings.folder()
    commit(Lake(settings), FINDINGS, ROW)
    return settings


def doctor(*arguments):
    answer = CliRunner().invoke(app, ["doctor", "--json", *arguments])
    return answer.exit_code, json.loads(answer.output)


def wrong(found):
    return [(one["check"], one["what"], one["todo"]) for one in found if one["state"] == "wrong"]


def test_a_sound_home_is_well(home):
    code, found = doctor()
    assert (code, wrong(found)) == (0, [])
    checks = {one["check"] for one in found}
    assert {"Python", "packages", "Java", "disk", "memory", "clock", "home", "tables", "services"} <= checks


def test_a_home_that_is_not_there_yet_is_no_fault(settings):
    assert wrong(doctor()[1]) == []
    assert not settings.home.exists()


def test_a_flipped_bit_is_found(home):
    (file,) = Path(Lake(home).uri(FINDINGS).removeprefix("file://")).rglob("*.parquet")
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(bytes(content))
    code, found = doctor()
    assert code == 1
    ((check, what, todo),) = wrong(found)
    assert (check, todo) == ("tables", "`twin repair findings`")
    assert "is not what was written" in what


def test_leftovers_modes_and_missing_digests_are_mended(home):
    table = Path(Lake(home).uri(FINDINGS).removeprefix("file://"))
    (table / "_sums.json").unlink()
    (table / "write-killed").mkdir()
    (table / "write-killed" / "part.parquet").write_text("half")
    old = home.folder("staging") / "old.json"
    old.write_text("{}")
    os.utime(old, (time.time() - 200_000,) * 2)
    (home.home / "staging" / "work-killed").mkdir()
    home.tokens_file.write_text("{}")
    home.tokens_file.chmod(0o644)
    home.home.chmod(0o755)
    code, found = doctor()
    assert code == 1
    assert len(wrong(found)) == 6, wrong(found)
    doctor("--fix")
    home.tokens_file.unlink()
    assert wrong(doctor()[1]) == []
    assert (table / "_sums.json").exists()
    assert not (table / "write-killed").exists()
    assert not old.exists()
    assert Lake(home).arrow(FINDINGS).num_rows == 1


def test_somebody_who_is_writing_leaves_no_leftovers(home):
    (Path(Lake(home).uri(FINDINGS).removeprefix("file://")) / "write-now").mkdir()
    with Lake(home).exclusive():
        states = {one.state for one in home_checks.leftovers(home)}
    assert states == {"note"}


def test_a_killed_supervisor_is_told(home):
    from twin.app.platform import PlatformState
    from twin.app.services import ProcessId

    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    state = PlatformState(supervisor=ProcessId.of(child.pid), started_at="2026-01-01T00:00:00Z")
    state.write(home)
    child.kill()
    child.wait()
    (told,) = platform.services(home)
    assert (told.state, told.what) == ("wrong", "the supervisor was killed")
    (home.home / "platform.json").write_text("{")
    (told,) = platform.services(home)
    assert told.what == "platform.json cannot be read"


def test_a_broken_airflow_database_is_told(home):
    file = home.folder("airflow") / "airflow.db"
    file.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    found = [one for one in checkup(home) if one.check == "airflow database"]
    assert [one.state for one in found] == ["wrong"]


def test_java_that_does_not_run_is_told(home, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    (told,) = machine.java(home)
    assert (told.state, told.todo) == ("wrong", "unset JAVA_HOME, or `make env`")


def test_a_clock_that_was_set_back_is_told(home):
    later = time.time() + 9000
    os.utime(home.home, (later, later))
    (home.home / "new").touch()
    os.utime(home.home / "new", (later, later))
    (told,) = machine.clock(home)
    assert told.state == "wrong"


def test_a_broker_that_does_not_answer_is_told_without_its_password(home):
    asked = replace(home, sync_brokers=("rabbitmq=amqp://me:sesame@127.0.0.1:1/", "nothing"))
    found = [*platform.brokers(asked)]
    assert [one.state for one in found] == ["wrong", "wrong"]
    assert "sesame" not in " ".join(one.what for one in found)
