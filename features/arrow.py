"""Arrow schemas of the declared tables; nothing here needs Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twin.core.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_schema(table: Table) -> pa.Schema:
    import pyarrow as pa

    kinds = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "flag": pa.bool_(),
        "date": pa.date32(),
    }
    return pa.schema([(field.name, kinds[field.kind]) for field in table.fields])
