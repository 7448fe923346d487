"""Batch requests: files of flat configurations, checked row by row."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from twin.core.configuration import FAMILIES, Configuration
from twin.core.fields import fields_of
from twin.core.tables import Reject

_KNOWN = {field.name: field for field in fields_of(Configuration)}


class BadRequestFile(Exception):
    """Not a single row can be read from the file."""


@dataclass(frozen=True)
class Requests:
    """What a request file asks, and what of it could not be understood."""

    asked: list[tuple[str, Configuration]]
    rejects: list[Reject]


def read_requests(path: Path) -> Requests:
    asked: list[tuple[str, Configuration]] = []
    rejects: list[Reject] = []
    used: set[str] = set()
    rows = 0
    for number, values in _rows(path):
        rows += 1
        request_id = (
            str(values.pop("request_id", None) or number) if isinstance(values, dict) else str(number)
        )
        problems = problems_of(values)
        if request_id in used:
            problems = [("request_id", "another row has the same request_id")]
        if problems:
            rejects += [Reject(request_id=request_id, row=number, field=f, reason=r) for f, r in problems]
            continue
        used.add(request_id)
        asked.append((request_id, Configuration.from_flat(values)))
    if not rows:
        raise BadRequestFile(f"{path} holds no request")
    return Requests(asked, rejects)


def _rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Row number from 1, and the row's values without the empty ones (or what stands there instead)."""
    readers = {".csv": _csv_rows, ".jsonl": _jsonl_rows, ".parquet": _parquet_rows}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise BadRequestFile(f"{path} is none of {', '.join(readers)}")
    if not path.is_file():
        raise BadRequestFile(f"{path} does not exist")
    try:
        for number, values in enumerate(reader(path), start=1):
            if isinstance(values, dict):
                values = {name: value for name, value in values.items() if not _is_missing(value)}
            yield number, values
    except UnicodeDecodeError as error:
        raise BadRequestFile(f"{path} is not UTF-8 text (byte {error.start})") from error


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file, restkey="", strict=True)
        names = reader.fieldnames or []
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise BadRequestFile(f"{path} names a column twice: {', '.join(twice)}")
        try:
            yield from reader
        except csv.Error as error:
            raise BadRequestFile(f"{path} line {reader.line_num}: {error}") from error


def _jsonl_rows(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8-sig") as file:
        for line in file:
            if line.strip():
                try:
                    yield json.loads(line)
                except json.JSONDecodeError as error:
                    yield f"not JSON: {error}"


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    from pyarrow import ArrowInvalid, parquet

    try:
        batches = parquet.ParquetFile(path).iter_batches()
        for batch in batches:
            yield from batch.to_pylist()
    except ArrowInvalid as error:
        raise BadRequestFile(f"{path} is not a Parquet file: {error}") from error


def problems_of(values: Any) -> list[tuple[str, str]]:
    """Field and reason of everything that is wrong with a flat configuration."""
    if not isinstance(values, dict):
        return [("", values if isinstance(values, str) else "not an object of columns and values")]
    if "" in values:
        return [("", "the row has more cells than the header")]
    family = values.get("family")
    if family not in FAMILIES:
        said = "missing" if family is None else f"{family!r} is not known"
        return [("family", f"{said}; one of: {', '.join(FAMILIES)}")]
    try:
        Configuration.from_flat(values)
    except ValidationError as error:
        return [(str(problem["loc"][-1]), _reason(dict(problem), str(family))) for problem in error.errors()]
    return []


def _reason(problem: dict[str, Any], family: str) -> str:
    name = str(problem["loc"][-1])
    field = _KNOWN.get(name)
    if problem["type"] == "extra_forbidden":
        if field:
            return f"does not apply to {family}"
        near = get_close_matches(name, _KNOWN, n=1)
        return "unknown column" + (f"; did you mean {near[0]}?" if near else "")
    if problem["type"] == "missing" and field:
        return f"missing: {field.description}" + (f" [{field.unit}]" if field.unit else "")
    allowed = f" (allowed: {field.range_text})" if field and field.range_text else ""
    return f"{problem['input']!r}: {problem['msg']}{allowed}"
