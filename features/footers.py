"""What Parquet files tell of themselves without being read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from features.arrow import arrow_schema
from features.lake import DataFile, Lake
from twin.core.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import FileMetaData


def extremes(lake: Lake, table: Table, files: Sequence[DataFile]) -> pa.Table:
    """Of each file a row with the least and one with the greatest value of every column, and one that is
    empty where the file has a gap: what its footer tells. A range that these keep is kept by all rows."""
    import pyarrow as pa
    from pyarrow import parquet

    place = lake.files(table)
    footers = [parquet.read_metadata(place.path(file.path), filesystem=place.system) for file in files]
    rows = [
        dict(file.parts) | row for file, told in zip(files, footers, strict=True) for row in _told_by(told)
    ]
    return pa.Table.from_pylist(rows, arrow_schema(table))


def _told_by(footer: FileMetaData) -> tuple[dict[str, Any], ...]:
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    gaps: dict[str, Any] = {}
    for group in range(footer.num_row_groups):
        for at in range(footer.num_columns):
            column = footer.row_group(group).column(at)
            name, told = column.path_in_schema, column.statistics
            if told.has_min_max:
                least[name] = min(least.get(name, told.min), told.min)
                greatest[name] = max(greatest.get(name, told.max), told.max)
            if told.null_count:
                gaps[name] = None
    return least, greatest, least | gaps
