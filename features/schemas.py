"""Spark schemas of the declared tables."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from twin.core.fields import Kind
from twin.core.tables import Table

_TYPES: dict[Kind, DataType] = {
    "text": StringType(),
    "integer": LongType(),
    "number": DoubleType(),
    "flag": BooleanType(),
    "date": DateType(),
}


def spark_schema(table: Table, kinds: Mapping[str, Kind] | None = None) -> StructType:
    """Columns are nullable here even where the declaration says otherwise: a missing value is a finding
    of the expectations, not a failed write. `kinds`: of columns that were written as something else."""
    return StructType(
        [
            StructField(
                field.name,
                _TYPES[(kinds or {}).get(field.name, field.kind)],
                True,
                {"comment": field.description},
            )
            for field in table.fields
        ]
    )
