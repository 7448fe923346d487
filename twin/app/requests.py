"""Batch requests: files of flat configurations, read in chunks of texts."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from training.batch import ROW
from twin.core.checking import KNOWN, as_texts
from twin.core.columns import Codes, Texts, without_text

CHUNK = 20_000
_ID = "request_id"
_NO_ROW = "not an object of columns and values"


class BadRequestFile(Exception):
    """Not a single row can be read from the file."""


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file as texts: their numbers from 1, their ids, the known columns, and whatever else
    they say."""

    numbers: Codes
    ids: Texts
    given: dict[str, Texts]
    extra: Texts

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame({ROW: self.numbers, _ID: self.ids, **self.given, "extra": self.extra})


def read_chunks(path: Path, size: int = CHUNK) -> Iterator[Chunk]:
    """A file that holds nothing is refused."""
    readers = {".csv": _csv_rows, ".jsonl": _jsonl_rows, ".parquet": _parquet_rows}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise BadRequestFile(f"{path} is none of {', '.join(readers)}")
    if not path.is_file():
        raise BadRequestFile(f"{path} does not exist")
    rows, first = reader(path), 1
    try:
        while some := list(islice(rows, size)):
            yield _chunk(first, some)
            first += len(some)
    except UnicodeDecodeError as error:
        raise BadRequestFile(f"{path} is not UTF-8 text (byte {error.start})") from error
    if first == 1:
        raise BadRequestFile(f"{path} holds no request")


def _chunk(first: int, rows: list[Any]) -> Chunk:
    numbers = np.arange(first, first + len(rows))
    objects = [row if isinstance(row, dict) else {"": _NO_ROW} for row in rows]
    names = dict.fromkeys(name for row in objects for name in row)
    given = {name: as_texts([row.get(name) for row in objects]) for name in names if name in KNOWN}
    ids = as_texts([row.get(_ID) for row in objects])
    unknown = [name for name in names if name not in KNOWN and name != _ID]
    extra = np.full(len(rows), None, dtype=object)
    if unknown:
        for at, row in enumerate(objects):
            said = {name: row[name] for name in unknown if row.get(name) not in (None, "")}
            extra[at] = said or None
    return Chunk(numbers, np.where(without_text(ids), numbers.astype(str), ids), given, extra)


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
                    yield {"": f"not JSON: {error}"}


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    from pyarrow import ArrowInvalid, parquet

    try:
        batches = parquet.ParquetFile(path).iter_batches()
        for batch in batches:
            yield from batch.to_pylist()
    except ArrowInvalid as error:
        raise BadRequestFile(f"{path} is not a Parquet file: {error}") from error
