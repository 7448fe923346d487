"""Tables that an older release wrote: what has changed since in the declared columns, and how rows are read.

A column declared since is empty, one that is declared no longer stays in the old versions, an integer that
became a number is read as one. Anything else needs a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from features.damage import SchemaChanged
from twin.core.fields import Field, Kind
from twin.core.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from deltalake import Schema as DeltaSchema

_TYPES: dict[Kind, str] = {
    "text": "string", "integer": "long", "number": "double", "flag": "boolean", "date": "date",
}  # fmt: skip
_SQL: dict[Kind, str] = {
    "text": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "flag": "BOOLEAN", "date": "DATE",
}  # fmt: skip
_KINDS = {told: kind for kind, told in _TYPES.items()} | {"integer": "integer", "float": "number"}
# an integer beyond 2**53 would lose digits: Arrow refuses to cast it, and so the table is told unreadable
_WIDER = {("integer", "number")}


def delta_schema(table: Table) -> Any:
    from deltalake import Field, Schema
    from deltalake.schema import PrimitiveType

    return Schema(
        [
            Field(
                field.name,
                PrimitiveType(_TYPES[field.kind]),
                nullable=True,
                metadata={"comment": field.description},
            )
            for field in table.fields
        ]
    )


def kinds_of(schema: DeltaSchema) -> dict[str, str]:
    """Columns as they were written; a type that we never write under its own name."""
    told = {field.name: str(getattr(field.type, "type", field.type)) for field in schema.fields}
    return {name: _KINDS.get(kind, kind) for name, kind in told.items()}


def is_current(table: Table, delta: DeltaTable) -> bool:
    """Every declared column is there with its type; raises where that cannot be helped."""
    there = kinds_of(delta.schema())
    for field in table.fields:
        kind = there.get(field.name, field.kind)
        if kind != field.kind and (kind, field.kind) not in _WIDER:
            raise SchemaChanged(
                f"table {table.name} has column {field.name} as {kind}, which this release declares as "
                f"{field.kind}: read it with the release that wrote it (`twin export {table.name}`), or set "
                f"it aside with `twin repair {table.name} --anew` and take its files in again"
            )
    return all(there.get(field.name) == field.kind for field in table.fields)


def widened(table: Table, delta: DeltaTable) -> list[str]:
    there = kinds_of(delta.schema())
    return [field.name for field in table.fields if there.get(field.name, field.kind) != field.kind]


def added(table: Table, delta: DeltaTable) -> list[Field]:
    there = kinds_of(delta.schema())
    return [field for field in table.fields if field.name not in there]


def as_declared(table: Table, rows: pa.Table) -> pa.Table:
    """Rows of an older version under the columns of now."""
    import pyarrow as pa

    from features.arrow import arrow_schema

    schema = arrow_schema(table)
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(len(rows), field.type))
    return rows.select(list(table.columns)).cast(schema)


def declared_columns(table: Table, delta: DeltaTable) -> str:
    """The same as a SQL projection, so that a predicate finds the columns of now."""
    there = kinds_of(delta.schema())

    def column(field: Field) -> str:
        told = f'"{field.name}"' if field.name in there else "NULL"
        if there.get(field.name) == field.kind:
            return told
        return f'CAST({told} AS {_SQL[field.kind]}) "{field.name}"'

    return ", ".join(map(column, table.fields))
