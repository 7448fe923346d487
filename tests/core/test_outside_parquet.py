from __future__ import annotations

import io

import pyarrow as pa
import pytest
from pyarrow import parquet

from twin.core.outside import BadInput
from twin.core.outside_parquet import MOST_COLUMNS, parquet_batches


def file_of(columns, **options):
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file, **options)
    return file


def cells_of(file, size=1_000):
    return list(parquet_batches(file, size))


def test_cells_come_in_batches_as_they_were_written():
    rows = {
        "text": ["a", None, "b"],
        "number": [1.5, None, 2.0],
        "whole": [1, 2, 3],
        "said": [True, None, False],
    }
    assert cells_of(file_of(rows), 2) == [
        (2, {name: cells[:2] for name, cells in rows.items()}),
        (1, {name: cells[2:] for name, cells in rows.items()}),
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
@pytest.mark.parametrize("dictionary", [True, False])
def test_texts_are_texts_however_they_are_kept(kind, dictionary):
    file = file_of({"a": pa.array(["x", None, "y", "x"]).cast(kind)}, use_dictionary=dictionary)
    assert cells_of(file) == [(4, {"a": ["x", None, "y", "x"]})]


def test_a_long_text_in_many_rows_is_refused_before_it_is_in_each_of_them():
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 10_000, pa.int32()), ["x" * 1_000_000])
    file = file_of({"a": text}, compression="zstd")
    assert len(file.getvalue()) < 10_000
    before = pa.total_allocated_bytes()
    with pytest.raises(BadInput, match="text of 1,000,000 bytes in column a"):
        cells_of(file)
    # unpacked it would be ten gigabytes
    assert pa.default_memory_pool().max_memory() < before + 2**30


def test_more_rows_than_are_wanted_are_refused_unread():
    with pytest.raises(BadInput, match="has 3 rows; at most 2 are read"):
        next(parquet_batches(file_of({"a": [1, 2, 3]}), 10, most_rows=2))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"a": [[1, 2]]}, "holds list"),
        ({"a": [{"b": 1}]}, "holds struct"),
        ({"a": [b"x"]}, "holds binary"),
        ({f"c{at}": [1] for at in range(MOST_COLUMNS + 1)}, "has 1001 columns"),
    ],
)
def test_what_is_no_table_of_numbers_and_texts_is_refused(columns, said):
    with pytest.raises(BadInput, match=said):
        cells_of(file_of(columns))


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PAR1" * 3])
def test_what_is_no_parquet_is_told(content):
    with pytest.raises(BadInput, match="is not a Parquet file"):
        cells_of(io.BytesIO(content))


def test_a_column_that_is_there_twice_is_refused():
    file = io.BytesIO()
    parquet.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), file)
    with pytest.raises(BadInput, match="twice"):
        cells_of(file)
