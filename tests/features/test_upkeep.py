"""Old versions are let go and say so; what is kept stays readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from features.lake import Lake, NoSuchVersion
from features.repairing import damages
from features.upkeep import leftovers, let_go, remove_leftovers
from twin.core.tables import FINDINGS

from ..a_finding import ROW


@pytest.fixture
def lake(settings, commit):
    """Six versions; version N has the line N."""
    lake = Lake(settings)
    for line in range(6):
        commit(lake, FINDINGS, ROW | {"line": line})
    return lake


def files_of(lake):
    return [*Path(lake.uri(FINDINGS).removeprefix("file://")).glob("write-*/*.parquet")]


def test_young_versions_are_kept(lake):
    assert let_go(lake, FINDINGS, days=1, versions=1) == 0
    assert lake.pandas(FINDINGS, version=0)["line"].tolist() == [0]


def test_a_dry_run_changes_nothing(lake):
    assert let_go(lake, FINDINGS, days=0, versions=2, dry_run=True) == 4
    assert lake.pandas(FINDINGS, version=0)["line"].tolist() == [0]


def test_old_versions_go_with_their_files_and_say_so(lake, commit):
    assert let_go(lake, FINDINGS, days=0, versions=2) == 4
    assert len(files_of(lake)) == 2
    for version in (4, 5):
        assert lake.pandas(FINDINGS, version=version)["line"].tolist() == [version]
    for version in (0, 3):
        with pytest.raises(NoSuchVersion, match=f"has versions 4 to 5, not {version}"):
            lake.arrow(FINDINGS, version=version)
    assert lake.version(FINDINGS) == 5
    assert lake.written(FINDINGS).rows == 1
    assert damages(lake, FINDINGS) == []
    assert let_go(lake, FINDINGS, days=0, versions=2) == 0
    # and it goes on from there
    assert commit(lake, FINDINGS, ROW | {"line": 6}) == 6
    assert let_go(lake, FINDINGS, days=0, versions=1) == 2
    assert lake.pandas(FINDINGS)["line"].tolist() == [6]
    assert len(files_of(lake)) == 1


def test_a_table_that_was_never_written_has_nothing_to_let_go(settings):
    assert let_go(Lake(settings), FINDINGS, days=0, versions=1) == 0


def test_the_folders_of_killed_writes_are_found_and_removed(lake):
    folder = Path(lake.uri(FINDINGS).removeprefix("file://")) / "write-killed"
    folder.mkdir()
    (folder / "part.parquet").write_text("half")
    assert leftovers(lake, FINDINGS) == ["write-killed"]
    assert remove_leftovers(lake, FINDINGS) == 1
    assert not folder.exists()
    assert lake.pandas(FINDINGS, version=0)["line"].tolist() == [0]
