"""Commands tell damage in a sentence; `twin repair` restores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from features.lake import Lake
from twin.app.cli import app
from twin.core.tables import DOCUMENTS, FINDINGS

from ..a_finding import ROW


def twin(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def damaged(settings, commit):
    """A table of two versions whose last log entry is empty."""
    lake = Lake(settings)
    for line in (1, 2):
        commit(lake, FINDINGS, ROW | {"line": line})
    entry = Path(lake.uri(FINDINGS).removeprefix("file://")) / "_delta_log" / f"{1:020}.json"
    entry.write_text("")
    return lake


def test_a_damaged_table_is_told_in_a_sentence(damaged):
    for command in (("quality",), ("export", "findings"), ("export", "findings", "--where", "line = 1")):
        answer = twin(*command)
        assert answer.exit_code == 1
        (told,) = answer.output.splitlines()
        assert told.startswith("twin: table findings is damaged: _delta_log/")
        assert "twin repair findings" in told


def test_nothing_is_repaired_without_being_told_to(damaged):
    answer = twin("repair")
    assert answer.exit_code == 1
    assert "version 0 is restored; given up: version 1" in answer.output
    assert "makes it again from bronze" in answer.output
    assert twin("quality").exit_code == 1


def test_repair_restores_and_says_where_the_damaged_file_is(damaged):
    answer = json.loads(twin("repair", "--yes", "--json").output)
    assert [*Path(answer["repaired"]["findings"]).rglob("*.json")]
    assert [one["line"] for one in json.loads(twin("quality", "--json").output)] == [1]
    assert "No table is damaged" in twin("repair").output


def test_what_cannot_be_made_again_is_said(settings, commit):
    lake = Lake(settings)
    card = dict.fromkeys(DOCUMENTS.columns) | {"source_id": "s"}
    commit(lake, DOCUMENTS, card)
    answer = twin("repair", "documents", "--anew", "--yes")
    assert answer.exit_code == 0
    assert "begins anew" in answer.output
    assert "take them in again" in answer.output


@pytest.mark.parametrize("arguments", [("nothing",), ("--to", "1"), ("--anew",), ("findings", "--to", "7")])
def test_a_repair_that_makes_no_sense_is_refused(damaged, arguments):
    assert twin("repair", *arguments).exit_code == 2
