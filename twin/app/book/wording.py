"""Columns, values and places in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from twin.core.configuration import Configuration
from twin.core.fields import Field, fields_of

COLUMNS: dict[str, Field] = {field.name: field for field in fields_of(Configuration)}
_UNITS = ("_bytes", "_mb", "_mbps", "_msgs_per_s", "_ms", "_s")


def words(column: str) -> str:
    """A column's name without its unit."""
    unit = next((one for one in _UNITS if column.endswith(one)), "")
    return column.removesuffix(unit if unit != column else "").replace("_", " ")


def shown(value: float) -> str:
    """Four digits are more than any of these figures is worth."""
    return f"{float(f'{value:.4g}'):,.10g}"


def signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def exactly(value: Any, unit: str | None = None) -> str:
    """A setting as a person writes it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if unit == "bytes" and isinstance(value, int) and value and value % 1024 == 0:
        return f"{value // 1024**2} MB" if value % 1024**2 == 0 else f"{value // 1024} KB"
    number = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else f"{value}"
    return f"{number} {unit}" if unit else number


def told(column: str, value: Any) -> str:
    """One setting in words: a flag by its name, anything else with its value."""
    field = COLUMNS[column]
    if value is None:
        return f"no {words(column)}"
    if field.kind == "flag":
        return words(column) if value else f"not {words(column)}"
    return f"{words(column)} {exactly(value, field.unit)}"


def told_all(columns: Iterable[str], settings: Mapping[str, Any]) -> str:
    return ", ".join(told(column, settings.get(column)) for column in columns)


def anchor(text: str) -> str:
    """As a part of an address."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def anchors(texts: Iterable[str]) -> dict[str, str]:
    """A part of an address for each, no two alike."""
    found: dict[str, str] = {}
    for text in dict.fromkeys(texts):
        place, further = anchor(text), 2
        while place in found.values():
            place, further = f"{anchor(text)}-{further}", further + 1
        found[text] = place
    return found
