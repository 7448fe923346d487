from __future__ import annotations

import errno
import signal
import subprocess
import sys
import threading

import pytest
from deltalake import DeltaTable

from features.lake import Lake, NoSuchTable, WriteFailed, _root_cause
from features.predicates import BadPredicate
from features.schemas import spark_schema
from twin.core.tables import FINDINGS, TABLES

from ..a_finding import ROW


@pytest.fixture
def lake(settings):
    return Lake(settings)


@pytest.fixture
def frame(spark):
    def make(*rows):
        return spark.createDataFrame([ROW | row for row in rows], spark_schema(FINDINGS))

    return make


def test_a_table_reads_back_the_same_with_and_without_spark(lake, frame, spark):
    lake.replace(FINDINGS, frame({"line": 2}, {"line": 1, "rule": "other"}))
    by_spark = sorted(lake.spark(FINDINGS, spark).collect(), key=lambda row: row["rule"])
    by_arrow = lake.pandas(FINDINGS).to_dict("records")
    assert [row.asDict() for row in by_spark] == by_arrow


def test_a_read_leaves_nothing_in_python_to_threads_that_outlive_it(lake, frame, monkeypatch):
    """They do when the program ends right after a read, and it aborts: seen in 26 of 150 such programs."""

    def called_back(_):
        raise AssertionError("a file system that Arrow's threads call back")

    monkeypatch.setattr("pyarrow.fs.PyFileSystem", called_back)
    lake.replace(FINDINGS, frame({"line": 3}))
    assert lake.pandas(FINDINGS)["line"].tolist() == [3]
    assert lake.columns(FINDINGS, "line") == [{"line": 3}]


def test_same_content_adds_no_version_whatever_its_order(lake, frame):
    first = lake.replace(FINDINGS, frame({"line": 1}, {"line": 2}))
    again = lake.replace(FINDINGS, frame({"line": 2}, {"line": 1}))
    assert (first.changed, again.changed) == (True, False)
    assert lake.version(FINDINGS) == 0


def test_a_row_more_or_less_or_twice_is_a_new_version(lake, frame):
    for version, rows in enumerate([[{}], [{}, {}], [{"line": 2}], [{"line": 2, "expected": None}], []]):
        assert lake.replace(FINDINGS, frame(*rows)).version == version


def test_older_versions_stay_readable(lake, frame, spark):
    lake.replace(FINDINGS, frame({"line": 1}))
    lake.replace(FINDINGS, frame({"line": 2}))
    assert lake.spark(FINDINGS, spark, version=0).first()["line"] == 1
    assert lake.pandas(FINDINGS, version=0)["line"].tolist() == [1]
    assert lake.pandas(FINDINGS)["line"].tolist() == [2]


def test_files_of_a_write_that_never_committed_are_not_read(lake, frame, spark):
    lake.replace(FINDINGS, frame({"line": 1}))
    lake._write_files(FINDINGS, frame({"line": 9}))
    assert [row["line"] for row in lake.spark(FINDINGS, spark).collect()] == [1]
    assert lake.pandas(FINDINGS)["line"].tolist() == [1]


def test_of_two_writers_at_once_neither_is_lost_silently(lake, frame):
    lake.replace(FINDINGS, frame({"line": 1}))
    both_read = threading.Barrier(2)
    outcome: dict[int, object] = {}

    class Slow(Lake):
        def _write_files(self, table, frame):
            both_read.wait(60)
            return super()._write_files(table, frame)

    def write(line):
        writer = Slow.__new__(Slow)
        writer.__dict__ = dict(lake.__dict__)
        try:
            outcome[line] = writer.replace(FINDINGS, frame({"line": line})).version
        except WriteFailed as error:
            outcome[line] = error

    threads = [threading.Thread(target=write, args=(line,)) for line in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    committed = [line for line, result in outcome.items() if isinstance(result, int)]
    assert len(committed) == 1, outcome
    assert lake.pandas(FINDINGS)["line"].tolist() == committed


def test_a_table_that_was_never_written_says_so(lake):
    with pytest.raises(NoSuchTable, match="findings"):
        lake.pandas(FINDINGS)


def test_every_table_can_be_written_empty_and_read(lake, spark):
    for table in TABLES.values():
        if table.layer != "file":
            lake.replace(table, spark.createDataFrame([], spark_schema(table)))
            assert lake.spark(table, spark).count() == 0
            assert DeltaTable(lake.uri(table)).schema().to_json().count('"comment"') == len(table.fields)


def test_parts_that_are_not_written_stay(lake, frame):
    lake.replace_parts(
        FINDINGS, frame({"source_id": "a", "line": 1}, {"source_id": "b", "line": 2}), "source_id"
    )
    lake.replace_parts(
        FINDINGS, frame({"source_id": "b", "line": 3}, {"source_id": "b", "line": 4}), "source_id"
    )
    kept = lake.pandas(FINDINGS).sort_values("line")
    assert list(zip(kept["source_id"], kept["line"], strict=True)) == [("a", 1), ("b", 3), ("b", 4)]


def test_a_new_column_can_be_added_to_a_table_that_exists(lake, frame, spark):
    import dataclasses

    older = dataclasses.replace(FINDINGS, fields=FINDINGS.fields[:-1])
    lake.replace(older, frame({"line": 1}).drop("message"))
    lake.replace_parts(FINDINGS, frame({"line": 2, "source_id": "t"}), "source_id")
    rows = lake.pandas(FINDINGS).sort_values("line")
    assert rows["message"].tolist() == [None, "because"]
    assert lake.spark(FINDINGS, spark).count() == 2


def test_a_predicate_ranges_over_the_columns(lake, frame):
    lake.replace(FINDINGS, frame({"line": 1}, {"line": 2}, {"line": 3}))
    assert lake.arrow(FINDINGS, where="line > 1 AND severity = 'error'").num_rows == 2
    for predicate in ("nothing = 1", "line >", "1 = 1) UNION (SELECT 1", "line = 1; DROP TABLE findings"):
        with pytest.raises(BadPredicate):
            lake.arrow(FINDINGS, where=predicate)


def test_no_space_left_names_the_table_and_changes_nothing(lake, frame, monkeypatch):
    lake.replace(FINDINGS, frame({"line": 1}))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "_write_files", full)
        with pytest.raises(WriteFailed, match=r"findings .* No space left"):
            lake.replace(FINDINGS, frame({"line": 2}))
    assert lake.pandas(FINDINGS)["line"].tolist() == [1]
    lake.replace(FINDINGS, frame({"line": 2}))
    assert lake.pandas(FINDINGS)["line"].tolist() == [2]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("a call failed.\n: SparkException: Job aborted\n\tat x\nCaused by: A: b\nCaused by: C: d", "C: d"),
        ("a call failed.\n: SparkException: executor lost\n\tat x", "SparkException: executor lost"),
        ("No space left on device\nmore", "No space left on device"),
        ("", "OSError"),
    ],
)  # fmt: skip
def test_a_failed_write_tells_the_innermost_reason(said, told):
    assert _root_cause(OSError(said)) == told


KILLED_BEFORE_ITS_COMMIT = """
import os, signal
from features.bronze import rows_frame
from features.lake import Lake
from features.session import spark_session
from twin.core.measurement import Finding
from twin.core.settings import Settings
from twin.core.tables import FINDINGS

class Killed(Lake):
    def _add(self, *_):
        os.kill(os.getpid(), signal.SIGKILL)

settings = Settings.from_environment()
said = dict.fromkeys(("rule", "figure_id", "source_id", "printed", "expected", "message"), "x")
finding = Finding(**said, severity="error", line=9)
Killed(settings).replace(FINDINGS, rows_frame(spark_session(settings), FINDINGS, [finding]))
"""


def test_killed_in_the_middle_of_a_write(lake, frame):
    lake.replace(FINDINGS, frame({"line": 1}))
    killed = subprocess.run([sys.executable, "-c", KILLED_BEFORE_ITS_COMMIT], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert lake.version(FINDINGS) == 0
    assert lake.pandas(FINDINGS)["line"].tolist() == [1]
    assert lake.replace(FINDINGS, frame({"line": 2})).version == 1


def test_a_second_change_of_several_tables_waits_for_the_first(lake):
    from filelock import Timeout

    with lake.exclusive(), pytest.raises(Timeout):
        lake.exclusive().acquire(timeout=0.1)
