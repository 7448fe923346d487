"""Tables to files or to the terminal's standard output, without a JVM."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Any

from twin.core.spreadsheets import shielded_table

if TYPE_CHECKING:
    import pyarrow as pa


# a carriage return in a cell is quoted only if it could end a line
_QUOTED_FOR = "\r\n"


class _Lines:
    """Standard output, its lines ended as everywhere here."""

    def write(self, line: str) -> int:
        return sys.stdout.write(line.removesuffix(_QUOTED_FOR) + "\n")


def export_csv(rows: pa.Table) -> None:
    writer = csv.writer(_Lines(), lineterminator=_QUOTED_FOR)
    writer.writerow(rows.column_names)
    for batch in shielded_table(rows).to_batches():
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def export_jsonl(rows: pa.Table) -> None:
    for row in rows.to_pylist():
        sys.stdout.write(json.dumps(row, default=_plain, ensure_ascii=False) + "\n")


def export_parquet(rows: pa.Table) -> None:
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(rows, buffer)
    sys.stdout.buffer.write(buffer.getvalue())


FORMATS: dict[str, Callable[[pa.Table], None]] = {
    "csv": export_csv,
    "jsonl": export_jsonl,
    "parquet": export_parquet,
}


def _plain(value: Any) -> str:
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(type(value))
