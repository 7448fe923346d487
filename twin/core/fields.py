"""How a column is declared: once, on the row type that owns it.

A row type is a frozen pydantic model whose attributes are quantities (`Annotated[type, quantity(...)]`).
`fields_of` flattens row types into the columns from which Spark schemas, expectations, request schemas,
model signatures and docs are derived.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, ConfigDict
from pydantic import Field as pydantic_field

Kind = Literal["text", "integer", "number", "flag", "date"]

_KINDS: dict[type, Kind] = {str: "text", int: "integer", float: "number", bool: "flag", date: "date"}


class Row(BaseModel):
    """A frozen record; an unknown attribute is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def quantity(
    description: str,
    *,
    unit: str | None = None,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    example: Any = None,
) -> Any:
    """What a column means; goes into `Annotated` so that every row type shares the declaration."""
    return pydantic_field(
        description=description,
        ge=ge,
        gt=gt,
        le=le,
        examples=None if example is None else [example],
        json_schema_extra=None if unit is None else {"unit": unit},
    )


@dataclass(frozen=True)
class Field:
    """One column: what every derived schema is made from."""

    name: str
    kind: Kind
    description: str
    unit: str | None = None
    minimum: float | None = None
    exclusive_minimum: bool = False
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    nullable: bool = False
    example: Any = None

    @property
    def range_text(self) -> str:
        """The admitted values as a person writes them."""
        if self.choices:
            return " | ".join(self.choices)
        if self.minimum is None and self.maximum is None:
            return ""
        low = (
            "" if self.minimum is None else f"{'> ' if self.exclusive_minimum else '>= '}{self.minimum:.10g}"
        )
        high = "" if self.maximum is None else f"<= {self.maximum:.10g}"
        return ", ".join(part for part in (low, high) if part)


def fields_of(row_type: type[BaseModel]) -> tuple[Field, ...]:
    """The flat columns of a row type; nested row types and unions of them are flattened in place."""
    found: dict[str, Field] = {}
    for name, info in row_type.model_fields.items():
        parts = _row_types(info.annotation)
        if parts:
            optional = types.NoneType in get_args(info.annotation)
            for field in _merged(parts):
                _add(found, replace(field, nullable=True) if optional else field)
        else:
            _add(found, _leaf(name, info))
    return tuple(found.values())


def as_optional(fields: Iterable[Field]) -> tuple[Field, ...]:
    return tuple(replace(field, nullable=True) for field in fields)


def flatten(row: BaseModel) -> dict[str, Any]:
    """A row's values under its flat column names."""
    values: dict[str, Any] = {}
    for name, value in row:
        values.update(flatten(value) if isinstance(value, BaseModel) else {name: value})
    return values


def pick(values: Mapping[str, Any], row_type: type[BaseModel]) -> dict[str, Any]:
    """The entries of a flat mapping that belong to this row type."""
    return {name: values[name] for name in row_type.model_fields if name in values}


def _row_types(annotation: Any) -> tuple[type[BaseModel], ...]:
    if get_origin(annotation) is Annotated:
        return _row_types(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(part for member in get_args(annotation) for part in _row_types(member))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (annotation,)
    return ()


def _merged(members: tuple[type[BaseModel], ...]) -> tuple[Field, ...]:
    """Columns of a union: a column that only some members have may be missing."""
    merged: dict[str, Field] = {}
    for member in members:
        for field in fields_of(member):
            _add(merged, field)
    shared = set.intersection(*({field.name for field in fields_of(member)} for member in members))
    return tuple(
        field if field.name in shared else replace(field, nullable=True) for field in merged.values()
    )


def _add(found: dict[str, Field], field: Field) -> None:
    known = found.get(field.name)
    if known is None:
        found[field.name] = field
        return
    if (known.kind, known.unit) != (field.kind, field.unit):
        raise TypeError(f"column {field.name!r} is declared with two types or units")
    found[field.name] = replace(
        known,
        choices=tuple(dict.fromkeys((*known.choices, *field.choices))),
        nullable=known.nullable or field.nullable,
    )


def _leaf(name: str, info: Any) -> Field:
    annotation = info.annotation
    nullable = False
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not types.NoneType]
        nullable = len(members) < len(get_args(annotation))
        (annotation,) = members
    # an optional quantity is written Annotated[...] | None: its declaration sits one level down
    metadata, declared = list(info.metadata), info
    if get_origin(annotation) is Annotated:
        annotation, declared = get_args(annotation)[:2]
        metadata += declared.metadata
    choices: tuple[str, ...] = ()
    if get_origin(annotation) is Literal:
        choices = get_args(annotation)
        annotation = str
    low = next((rule for rule in metadata if isinstance(rule, Ge | Gt)), None)
    high = next((rule for rule in metadata if isinstance(rule, Le)), None)
    extra = declared.json_schema_extra
    return Field(
        name=name,
        kind=_KINDS[annotation],
        description=declared.description or "",
        unit=extra.get("unit") if isinstance(extra, dict) else None,
        minimum=None if low is None else _bound(low.ge if isinstance(low, Ge) else low.gt),
        exclusive_minimum=isinstance(low, Gt),
        maximum=None if high is None else _bound(high.le),
        choices=choices,
        nullable=nullable,
        example=declared.examples[0] if declared.examples else None,
    )


def _bound(limit: Any) -> float:
    return float(limit)
