"""The schema source as a person reads it, and examples to start from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from twin.core.configuration import FAMILIES, Configuration, Platform, Software
from twin.core.fields import Field, fields_of
from twin.core.tables import TABLES


def fields_named(name: str) -> tuple[Field, ...] | None:
    """The columns of a request family or of a table."""
    if name in FAMILIES:
        own = [fields_of(part) for part in (Platform, Software, FAMILIES[name])]
        offered = [field for field in fields_of(Configuration) if field.name == "offered_rate_msgs_per_s"]
        return (*(field for part in own for field in part), *offered)
    return TABLES[name].fields if name in TABLES else None


def described(fields: Iterable[Field], defaults: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "column": field.name,
            "type": field.kind,
            "unit": field.unit,
            "required": not field.nullable and field.name not in defaults,
            "default": defaults.get(field.name),
            "allowed": field.range_text or None,
            "description": field.description,
        }
        for field in fields
    ]


def defaults_of(family: str) -> dict[str, Any]:
    """What a request may leave out; the family itself has to be named."""
    if family not in FAMILIES:
        return {}
    return {
        name: info.default
        for name, info in FAMILIES[family].model_fields.items()
        if not info.is_required() and name != "family"
    }


def flat_example(family: str) -> dict[str, Any]:
    fields = fields_named(family) or ()
    values = {field.name: field.example for field in fields} | FAMILIES[family].example
    given = {name: value for name, value in values.items() if value is not None}
    flat = Configuration.from_flat(given | {"family": family}).flat()
    return {name: value for name, value in flat.items() if value is not None}


def example_yaml(family: str) -> str:
    """A configuration file with every column explained."""
    fields = {field.name: field for field in fields_named(family) or ()}
    lines = []
    for name, value in flat_example(family).items():
        note = ", ".join(part for part in (fields[name].unit, fields[name].range_text) if part)
        lines.append(f"# {fields[name].description}" + (f" [{note}]" if note else ""))
        lines.append(yaml.safe_dump({name: value}).strip())
    return "\n".join(lines) + "\n"
