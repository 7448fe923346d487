"""Parquet that anybody may have written, read within bounds: a few bytes of it can stand for any number of
rows, and a dictionary of one long text for that text in each of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from twin.core.outside import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

# far beyond what a flat configuration can say
MOST_COLUMNS = 1_000
_MOST_BYTES = 10_000


def parquet_batches(
    source: Path | BinaryIO, size: int, most_rows: int | None = None
) -> Iterator[tuple[int, dict[str, list[Any]]]]:
    """At most `size` rows at a time: how many, and their cells by column. `BadInput` says what the file is,
    without its name."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        columns = parquet.read_schema(source)
        _check_columns(columns)
        texts = [one.name for one in columns if _is_text(one.type)]
        # texts stay the dictionaries that they are in the file, each held once
        with parquet.ParquetFile(source, read_dictionary=texts) as file:
            rows = file.metadata.num_rows
            if most_rows is not None and rows > most_rows:
                raise BadInput(f"has {rows:,} rows; at most {most_rows:,} are read")
            for batch in file.iter_batches(batch_size=size, use_threads=False):
                # a place in a dictionary that has fewer, a text that is none
                batch.validate(full=True)
                cells = zip(batch.schema.names, batch.columns, strict=True)
                yield batch.num_rows, {name: _cells(name, column) for name, column in cells}
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"is not a Parquet file: {(str(error).splitlines() or [''])[0]}") from error


def _check_columns(columns: pa.Schema) -> None:
    from pyarrow import types

    if len(columns) > MOST_COLUMNS:
        raise BadInput(f"has {len(columns)} columns; at most {MOST_COLUMNS} are read")
    if len(set(columns.names)) < len(columns):
        raise BadInput("names a column twice")
    plain = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_temporal,
             types.is_null, _is_text)  # fmt: skip
    for column in columns:
        if not any(is_a(column.type) for is_a in plain):
            raise BadInput(f"holds {column.type} in column {column.name}, no numbers or texts")


def _is_text(kind: pa.DataType) -> bool:
    from pyarrow import types

    held = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(held) or types.is_large_string(held) or types.is_string_view(held))


def _cells(name: str, column: pa.Array) -> list[Any]:
    import pyarrow as pa
    from pyarrow import compute

    if not isinstance(column, pa.DictionaryArray):
        cells: list[Any] = column.to_pylist()
        return cells
    longest = compute.max(compute.binary_length(column.dictionary)).as_py() or 0
    if longest > _MOST_BYTES:
        raise BadInput(f"has a text of {longest:,} bytes in column {name}; at most {_MOST_BYTES:,} are read")
    texts = column.dictionary.to_pylist()
    return [None if at is None else texts[at] for at in column.indices.to_pylist()]
