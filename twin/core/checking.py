"""Flat requests, checked: most rows are good and are taken by the column; what looks odd is asked the row
types, which alone decide and give the reasons."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from twin.core.columns import Columns, Flags, Texts, without_text
from twin.core.configuration import FAMILIES, Configuration, Platform, Software
from twin.core.fields import Field, fields_of

KNOWN: dict[str, Field] = {field.name: field for field in fields_of(Configuration)}
Problem = tuple[str, str]
_PLAIN = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
# from here on it pays to read equal texts once
_MANY = 200
# a table with gaps has its whole numbers written with a point; longer ones are not exact as floats
_WHOLE = re.compile(r"-?[0-9]{1,15}(\.0{1,3})?")


@dataclass(frozen=True)
class Checked:
    """`rows` are the places of the good ones, which `columns` holds; the others have their problems."""

    rows: npt.NDArray[np.int64]
    columns: Columns
    problems: dict[int, list[Problem]]


def check(size: int, given: Mapping[str, Texts], extra: Texts | None = None) -> Checked:
    """`given`: columns of texts, None where a row says nothing; `extra`: what else a row says, by name."""
    good = np.zeros(size, dtype=bool)
    values: dict[str, npt.NDArray[Any]] = {name: _empty(size, field) for name, field in KNOWN.items()}
    family = given.get("family", np.full(size, None, dtype=object))
    for name in FAMILIES:
        mine = np.flatnonzero(family == name)
        if len(mine):
            good[mine] = _take(name, mine, given, values)
    if extra is not None:
        good &= np.array([not one for one in extra], dtype=bool)
    problems: dict[int, list[Problem]] = {}
    for at in np.flatnonzero(~good).tolist():
        row = {name: column[at] for name, column in given.items() if column[at] is not None}
        row |= (extra[at] or {}) if extra is not None else {}
        if found := problems_of(row):
            problems[at] = found
        else:
            good[at] = True
            for name, value in Configuration.from_flat(row).flat().items():
                values[name][at] = np.nan if value is None and values[name].dtype != object else value
    rows = np.flatnonzero(good)
    return Checked(rows, Columns.from_mapping(size, values).only(rows), problems)


def problems_of(values: Any) -> list[Problem]:
    """Field and reason of everything that is wrong with a flat configuration."""
    if not isinstance(values, dict):
        return [("", "not an object of columns and values")]
    # what has no column: cells beyond the header, or what is wrong with the whole row
    if (nameless := values.get("")) is not None:
        return [("", nameless if isinstance(nameless, str) else "the row has more cells than the header")]
    family = values.get("family")
    if family not in FAMILIES:
        said = "missing" if family is None else f"{family!r} is not known"
        return [("family", f"{said}; one of: {', '.join(FAMILIES)}")]
    try:
        Configuration.from_flat(values)
    except ValidationError as error:
        return [(str(problem["loc"][-1]), _reason(dict(problem), str(family))) for problem in error.errors()]
    return []


def _take(
    family: str, rows: npt.NDArray[np.int64], given: Mapping[str, Texts], values: dict[str, npt.NDArray[Any]]
) -> Flags:
    """Write the rows of a family into the columns; false where a row needs a closer look."""
    own = _own_fields(family)
    plain = np.ones(len(rows), dtype=bool)
    for name, texts in given.items():
        if name not in own:
            plain &= without_text(texts[rows])
    for name, (field, required, default) in own.items():
        cells = given[name][rows] if name in given else np.full(len(rows), None, dtype=object)
        missing = without_text(cells)
        if required:
            plain &= ~missing
        if missing.all():
            values[name][rows] = _cell(field, default)
            continue
        found, fine = _parsed(field, cells)
        plain &= fine | missing
        found[missing] = _cell(field, default)
        values[name][rows] = found
    return plain


@cache
def _own_fields(family: str) -> dict[str, tuple[Field, bool, Any]]:
    """Per column of a family: its declaration, whether it is required, and its default."""
    parts = (Platform, Software, FAMILIES[family])
    found = {
        name: (KNOWN[name], info.is_required(), None if info.is_required() else info.get_default())
        for part in parts
        for name, info in part.model_fields.items()
    }
    offered = "offered_rate_msgs_per_s"
    return found | {offered: (KNOWN[offered], False, None)}


def _parsed(field: Field, texts: Texts) -> tuple[npt.NDArray[Any], Flags]:
    """Values, and where they are beyond doubt. Of many cells each text is read once."""
    if len(texts) <= _MANY:
        return _read(field, texts)
    import pandas as pd

    codes, distinct = pd.factorize(texts, use_na_sentinel=False)
    values, fine = _read(field, np.asarray(distinct, dtype=object))
    return values[codes], fine[codes]


def _read(field: Field, texts: Texts) -> tuple[npt.NDArray[Any], Flags]:
    if field.kind == "text":
        fine = np.array([not field.choices or text in field.choices for text in texts], dtype=bool)
        return texts.copy(), fine
    if field.kind == "flag":
        found = np.full(len(texts), None, dtype=object)
        for text, value in (("true", True), ("True", True), ("false", False), ("False", False)):
            found[texts == text] = value
        return found, ~without_text(found)
    numbers = _numbers(texts)
    fine = np.isfinite(numbers)
    # written any other way than plainly it is for the row types to decide
    plainly = _WHOLE if field.kind == "integer" else _PLAIN
    fine &= np.array([text is not None and plainly.fullmatch(text) is not None for text in texts], dtype=bool)
    if field.minimum is not None:
        fine &= numbers > field.minimum if field.exclusive_minimum else numbers >= field.minimum
    if field.maximum is not None:
        fine &= numbers <= field.maximum
    return numbers, fine


def _numbers(texts: Texts) -> npt.NDArray[np.float64]:
    """What is no number is not one, and nothing happens."""
    try:
        return np.array(["nan" if text is None else text for text in texts], dtype=np.float64)
    except ValueError:
        return np.array([_number(text) for text in texts], dtype=np.float64)


def _number(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        return np.nan


def _empty(size: int, field: Field) -> npt.NDArray[Any]:
    if field.kind in ("integer", "number"):
        return np.full(size, np.nan)
    return np.full(size, None, dtype=object)


def _cell(field: Field, value: Any) -> Any:
    return np.nan if value is None and field.kind in ("integer", "number") else value


def _reason(problem: dict[str, Any], family: str) -> str:
    name = str(problem["loc"][-1])
    field = KNOWN.get(name)
    if problem["type"] == "extra_forbidden":
        if field:
            return f"does not apply to {family}"
        near = get_close_matches(name, KNOWN, n=1)
        return "unknown column" + (f"; did you mean {near[0]}?" if near else "")
    if problem["type"] == "missing" and field:
        return f"missing: {field.description}" + (f" [{field.unit}]" if field.unit else "")
    allowed = f" (allowed: {field.range_text})" if field and field.range_text else ""
    return f"{problem['input']!r}: {problem['msg']}{allowed}"


def as_texts(values: Sequence[Any]) -> Texts:
    """Cells of any type as the texts that a file would hold; what is missing is None."""
    return np.array([_text(value) for value in values], dtype=object)


def _text(value: Any) -> str | None:
    if value is None or value == "" or (isinstance(value, float | np.floating) and np.isnan(value)):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
