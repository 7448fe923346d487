"""Batch requests: files of flat configurations, read in chunks of texts."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from training.batch import ROW
from twin.core.checking import KNOWN, as_texts
from twin.core.columns import Codes, Texts, without_text
from twin.core.outside import BadInput, json_of
from twin.core.outside_parquet import MOST_COLUMNS, parquet_batches
from twin.core.spreadsheets import bare

CHUNK = 10_000
# far beyond what a flat configuration can say
_MOST_CHARACTERS = 100_000
_ID = "request_id"


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
    # some row brings an id of its own
    named: bool

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame({ROW: self.numbers, _ID: self.ids, **self.given, "extra": self.extra})


def read_chunks(path: Path, size: int = CHUNK) -> Iterator[Chunk]:
    """A file that holds nothing is refused."""
    readers = {".csv": _csv_columns, ".jsonl": _jsonl_columns, ".parquet": _parquet_columns}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise BadRequestFile(f"{path} is none of {', '.join(readers)}")
    if not path.is_file():
        raise BadRequestFile(f"{path} does not exist")
    first = 1
    try:
        for rows, columns, nameless in reader(path, size):
            yield _chunk(first, rows, columns, nameless)
            first += rows
    except UnicodeDecodeError as error:
        raise BadRequestFile(f"{path} is not UTF-8 text (byte {error.start})") from error
    if first == 1:
        raise BadRequestFile(f"{path} holds no request")


def _chunk(first: int, rows: int, columns: Mapping[str, Texts], nameless: Mapping[int, Any]) -> Chunk:
    numbers = np.arange(first, first + rows)
    ids = columns.get(_ID, np.full(rows, None, dtype=object))
    extra = np.full(rows, None, dtype=object)
    for name in columns.keys() - KNOWN.keys() - {_ID}:
        for at in np.flatnonzero(~without_text(columns[name])).tolist():
            extra[at] = (extra[at] or {}) | {name: columns[name][at]}
    for at, said in nameless.items():
        extra[at] = (extra[at] or {}) | {"": said}
    given = {name: column for name, column in columns.items() if name in KNOWN}
    own = ~without_text(ids)
    return Chunk(numbers, np.where(own, ids, numbers.astype(str)), given, extra, bool(own.any()))


# how many rows, their cells by column, and what of a row has no column or is no row at all
_Read = tuple[int, dict[str, Texts], dict[int, Any]]


def _csv_columns(path: Path, size: int) -> Iterator[_Read]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, strict=True)
        try:
            names = next(reader, [])
            if len(names) > MOST_COLUMNS:
                raise BadRequestFile(f"{path} has {len(names)} columns; at most {MOST_COLUMNS} are read")
            twice = sorted(name for name, times in Counter(names).items() if times > 1)
            if twice:
                raise BadRequestFile(f"{path} names a column twice: {', '.join(twice)}")
            lines = (line for line in reader if line)
            while some := list(islice(lines, size)):
                beyond = {at: line[len(names) :] for at, line in enumerate(some) if len(line) > len(names)}
                # the header is as long as a row may be, and its own column is taken off again
                columns = list(zip_longest(names, *some))[: len(names)]
                yield len(some), {name: _texts(column) for name, *column in columns}, beyond
        except csv.Error as error:
            raise BadRequestFile(f"{path} line {reader.line_num}: {error}") from error


def _texts(cells: Sequence[str | None]) -> Texts:
    found = np.array(cells, dtype=object)
    found[found == ""] = None
    bare(found)
    return found


def _jsonl_columns(path: Path, size: int) -> Iterator[_Read]:
    with path.open(encoding="utf-8-sig") as file:
        lines = (line for line in _bounded(path, file) if line.strip())
        while some := list(islice(lines, size)):
            rows, broken = [], {}
            for at, line in enumerate(some):
                try:
                    row = json_of(line)
                except BadInput as error:
                    row, broken[at] = {}, f"not JSON: {error}"
                if not isinstance(row, dict):
                    row, broken[at] = {}, "not an object of columns and values"
                rows.append(row)
            names = dict.fromkeys(name for row in rows for name in row)
            yield len(rows), {name: as_texts([row.get(name) for row in rows]) for name in names}, broken


def _bounded(path: Path, file: TextIO) -> Iterator[str]:
    while line := file.readline(_MOST_CHARACTERS + 1):
        if len(line) > _MOST_CHARACTERS:
            raise BadRequestFile(f"{path} has a line of more than {_MOST_CHARACTERS} characters")
        yield line


def _parquet_columns(path: Path, size: int) -> Iterator[_Read]:
    try:
        for rows, columns in parquet_batches(path, size):
            yield rows, {name: as_texts(cells) for name, cells in columns.items()}, {}
    except BadInput as error:
        raise BadRequestFile(f"{path} {error}") from error
