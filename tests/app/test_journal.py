"""A line about every piece of work, whatever became of it; never a password; never in the way."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from twin.app import journal, pipeline
from twin.app.cli import app
from twin.app.journal import entries, journal_file, noted
from twin.app.pipeline import NothingToDo


def test_a_step_that_does_nothing_is_noted_with_the_reason(settings, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CTX_DAG_RUN_ID", "scheduled__2026")
    with pytest.raises(NothingToDo):
        pipeline.ingest_files(settings, [], library=False)
    (line,) = entries(settings)
    assert (line["step"], line["outcome"], line["run_id"]) == ("ingest_files", "nothing", "scheduled__2026")
    assert "no file waits" in line["what"]


def test_work_is_noted_with_its_figures_and_failures_with_their_cause(settings):
    with noted(settings, "one") as entry:
        entry.figures = {"version": 3, "scores": {"all": 1.5}, "refused": ["a", "b"], "none": None}
    with pytest.raises(ValueError, match="broken"), noted(settings, "two"):
        raise ValueError("broken")
    one, two = entries(settings)
    assert one["figures"] == {"version": 3, "scores.all": 1.5, "refused": 2}
    assert (one["outcome"], two["outcome"], two["what"]) == ("done", "failed", "ValueError: broken")
    assert one["run_id"] == two["run_id"]
    assert one["seconds"] >= 0


def test_no_password_gets_into_it(settings):
    def fails():
        with noted(settings, "sync") as entry:
            entry.figures = {"broker": "amqp://me:sesame@127.0.0.1:5672/", "token": "sesame"}
            raise OSError("amqp://me:sesame@127.0.0.1 does not answer")

    with pytest.raises(OSError, match="sesame"):
        fails()
    assert "sesame" not in journal_file(settings).read_text()
    assert "amqp://me:***@127.0.0.1" in journal_file(settings).read_text()


def test_one_that_cannot_be_written_fails_nothing(settings):
    settings.home.mkdir(parents=True)
    (settings.home / "logs").write_text("a file where a folder should be")
    with noted(settings, "one") as entry:
        entry.figures = {"at": object()}
    assert entries(settings) == []


def test_it_stays_small_and_a_cut_line_costs_itself_only(settings, monkeypatch):
    monkeypatch.setattr(journal, "_LARGEST_BYTES", 2000)
    for at in range(60):
        with noted(settings, f"step {at}"):
            pass
    files = [*journal_file(settings).parent.iterdir()]
    assert sum(file.stat().st_size for file in files) < 5000
    with journal_file(settings).open("a") as file:
        file.write('{"step": "cut')
    assert entries(settings)[-1]["step"] == "step 59"


def test_commands_that_change_something_are_noted_and_others_leave_no_trace(settings):
    settings.home.mkdir(parents=True)
    CliRunner().invoke(app, ["schema"])
    assert entries(settings) == []
    CliRunner().invoke(app, ["repair", "--help"])
    CliRunner().invoke(app, ["repair", "nothing"])
    assert [(one["step"], one["outcome"]) for one in entries(settings)] == [
        ("twin repair", "done"),
        ("twin repair", "failed"),
    ]
    assert all(json.loads(line) for line in journal_file(settings).read_text().splitlines())
