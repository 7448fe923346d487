from __future__ import annotations

import threading

import pytest
from deltalake import DeltaTable

from features.lake import Lake, NoSuchTable
from features.schemas import spark_schema
from twin.core.tables import FINDINGS, TABLES

ROW = {
    "rule": "a_rule", "severity": "error", "figure_id": "s:1:0", "source_id": "s", "line": 1,
    "printed": "1", "expected": "2", "message": "because",
}  # fmt: skip


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
        except Exception as error:
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
