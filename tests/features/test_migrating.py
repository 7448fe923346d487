"""Tables that an older release wrote are read and rewritten without loss."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyarrow import parquet

from features.batches import append
from features.damage import SchemaChanged
from features.lake import DataFile, Lake
from features.schemas import spark_schema
from twin.core.fields import Field
from twin.core.tables import FINDINGS, SAMPLES, Table

from ..a_finding import ROW


@pytest.fixture
def lake(settings):
    return Lake(settings)


def declared(table, without=(), **kinds):
    """A table as another release declared it."""
    fields = [
        replace(field, kind=kinds.get(field.name, field.kind))
        for field in table.fields
        if field.name not in without
    ]
    return replace(table, fields=tuple(fields))


def with_column(table: Table, name: str) -> Table:
    extra: Field = replace(table.fields[0], name=name, kind="text", nullable=True)
    return replace(table, fields=(*table.fields, extra))


NUMBER = declared(FINDINGS, line="number")


def test_a_column_added_since_reads_as_nothing_and_can_be_asked_for(lake, commit):
    commit(lake, declared(FINDINGS, without=("message",)), {k: v for k, v in ROW.items() if k != "message"})
    (row,) = lake.arrow(FINDINGS).to_pylist()
    assert row == ROW | {"message": None}
    assert lake.arrow(FINDINGS, where="message IS NULL AND line = 1").num_rows == 1
    assert lake.columns(FINDINGS, "line", "message") == [{"line": 1, "message": None}]


def test_a_column_removed_since_stays_in_the_old_version(lake, commit):
    older = with_column(FINDINGS, "hint")
    commit(lake, older, ROW | {"hint": "look here"})
    assert lake.arrow(FINDINGS).to_pylist() == [ROW]
    commit(lake, FINDINGS, ROW)
    assert lake.arrow(older, version=0)["hint"].to_pylist() == ["look here"]


def test_an_integer_that_became_a_number_is_cast(lake, commit):
    commit(lake, FINDINGS, ROW | {"line": 7})
    read = lake.arrow(NUMBER)
    assert read["line"].to_pylist() == [7.0]
    assert lake.arrow(NUMBER, where="line > 6.5").num_rows == 1
    commit(lake, NUMBER, ROW | {"line": 7.5})
    assert lake.arrow(NUMBER)["line"].to_pylist() == [7.5]
    assert lake.arrow(NUMBER, version=0)["line"].to_pylist() == [7.0]


def test_spark_reads_and_rewrites_older_columns_too(lake, commit, spark):
    older = with_column(declared(FINDINGS, without=("message",)), "hint")
    commit(lake, older, {k: v for k, v in ROW.items() if k != "message"} | {"hint": "x"})
    (row,) = lake.spark(NUMBER, spark).collect()
    assert row.asDict() == ROW | {"message": None, "line": 1.0}
    new = spark.createDataFrame([ROW | {"source_id": "t", "line": 2.5}], spark_schema(NUMBER))
    lake.replace_parts(NUMBER, new, "source_id")
    assert sorted(lake.arrow(NUMBER)["line"].to_pylist()) == [1.0, 2.5]
    assert lake.arrow(older, version=0)["hint"].to_pylist() == ["x"]


@pytest.mark.parametrize("kind", ["text", "flag"])
def test_any_other_change_is_told_by_name_and_what_to_do(lake, commit, kind):
    commit(lake, FINDINGS, ROW)
    changed = declared(FINDINGS, line=kind)
    for read in (lake.arrow, lambda table: lake.columns(table, "line")):
        with pytest.raises(SchemaChanged, match=rf"column line as integer.*{kind}.*--anew"):
            read(changed)


def test_a_number_does_not_become_an_integer(lake, commit):
    commit(lake, NUMBER, ROW | {"line": 7.5})
    with pytest.raises(SchemaChanged, match="column line as number"):
        lake.arrow(FINDINGS)


def test_a_table_that_grows_is_rewritten_when_a_type_widens(lake):
    older = declared(SAMPLES, interval_s="integer", without=("threads",))
    grown = (("one", older, {"interval_s": 2}), ("two", SAMPLES, {"interval_s": 0.5, "threads": 3}))
    for batch, table, row in grown:
        append(lake, table, [file_of(lake, batch, {"run": 1, "line": 1} | row)], batch)
    rows = lake.arrow(SAMPLES).to_pylist()
    assert sorted((row["interval_s"], row["threads"]) for row in rows) == [(0.5, 3), (2.0, None)]
    assert {row["tool"] for row in rows} == {"mqcph"}
    assert lake.arrow(older, version=0)["interval_s"].to_pylist() == [2]


def file_of(lake, name, row):
    parts = {"tool": "mqcph", "month": "2026-01"}
    path = f"tool=mqcph/month=2026-01/{name}.parquet"
    place = lake.files(SAMPLES)
    place.system.create_dir(place.path(path).rpartition("/")[0], recursive=True)
    rows = pa.Table.from_pylist([row | {"source_id": "s", "document_id": "d"}])
    parquet.write_table(rows, place.path(path))
    return DataFile(path, place.sizes([path])[path], 1, parts)
