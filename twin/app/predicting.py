"""Answers request files: predictions in request order in one file, rejects in a second."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from training.batch import FIRST_ROW, ROW, Asked, Block, answer_on_spark, arrow_schema, block_of, staged
from twin.app.requests import CHUNK, BadRequestFile, Chunk, read_chunks
from twin.app.staging import staging_folder
from twin.core.fields import Field
from twin.core.settings import Settings
from twin.core.spreadsheets import bared
from twin.core.tables import PREDICTIONS, REJECTS, Table

FORMATS = (".csv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Answered:
    """Where the answers are, and how many requests got a value, an excuse, a reject."""

    answers: Path
    rejects: Path | None
    answered: int
    excused: int
    rejected: int


def answer_file(
    path: Path,
    out: Path | None,
    settings: Settings,
    asked: Callable[[], Asked],
    chunk: int = CHUNK,
) -> Answered:
    """A file that fits into one chunk is answered here, a larger one on Spark. Bad input is told before a
    predictor is made: loading a model takes seconds."""
    out = out or path.with_name(f"{path.stem}.predictions{path.suffix}")
    if out.suffix.lower() not in FORMATS:
        raise BadRequestFile(f"{out} is none of {', '.join(FORMATS)}")
    suffix = out.suffix.lower()
    chunks = read_chunks(path, chunk)
    first, second = next(chunks), next(chunks, None)
    if second is None:
        return answer_chunk(first, out, asked())
    with staging_folder(settings) as folder:
        ids = _stage(folder, chain((first, second), chunks))
        from features.session import running_spark

        with running_spark(settings, "predict") as spark:
            answer_on_spark(spark, folder / "requests", ids, asked(), suffix, folder / "blocks")
        return _assembled(out, _in_order(folder / "blocks"))


def answer_chunk(chunk: Chunk, out: Path, asked: Asked) -> Answered:
    """All requests that there are, without Spark."""
    requests = chunk.frame()
    requests[FIRST_ROW] = requests.groupby("request_id")[ROW].transform("min")
    return _assembled(out, [block_of(asked.answer(requests), out.suffix.lower())])


def _stage(folder: Path, chunks: Iterable[Chunk]) -> Path | None:
    """A file for each chunk; and beside them the ids, where the requests have their own."""
    import pyarrow as pa
    from pyarrow import parquet

    requests, ids = folder / "requests", folder / "ids"
    requests.mkdir()
    ids.mkdir()
    named = False
    for number, chunk in enumerate(chunks):
        frame = chunk.frame()
        stream = pa.table({"stream": pa.array([staged(frame)], pa.large_binary())})
        parquet.write_table(stream, requests / f"{number:06}.parquet", compression="none")
        named = named or chunk.named
        rows = pa.Table.from_pandas(frame[[ROW, "request_id"]], preserve_index=False)
        parquet.write_table(rows, ids / f"{number:06}.parquet")
    return ids if named else None


def _in_order(folder: Path) -> Iterator[Block]:
    from pyarrow import parquet

    parts = [parquet.ParquetFile(path) for path in folder.glob("*.parquet")]
    held = [part for part in parts if part.metadata.num_rows]
    for part in sorted(held, key=lambda one: one.read_row_group(0, columns=["row"])["row"][0].as_py()):
        for row in part.read().to_pylist():
            yield Block(**row)


def _assembled(out: Path, blocks: Iterable[Block]) -> Answered:
    rejects_path = out.with_name(f"{out.stem}.rejects{out.suffix}")
    answered = excused = rejected = 0
    with _Writer(out, PREDICTIONS) as answers, _Writer(rejects_path, REJECTS) as rejects:
        for block in blocks:
            answers.append(block.answers)
            rejects.append(block.rejects)
            answered += block.answered
            excused += block.excused
            rejected += block.rejected
    if not rejected:
        # rejects of an earlier try must not look like this one's
        rejects_path.unlink(missing_ok=True)
    return Answered(out, rejects_path if rejected else None, answered, excused, rejected)


def read_back(path: Path) -> list[dict[str, Any]]:
    """A written file's rows with the types of their columns."""
    table = REJECTS if path.stem.endswith(".rejects") else PREDICTIONS
    match path.suffix.lower():
        case ".parquet":
            frame = pd.read_parquet(path)
        case ".csv":
            texts = [field.name for field in table.fields if field.kind == "text"]
            frame = pd.read_csv(
                path, dtype=dict.fromkeys(texts, "object"), keep_default_na=False, na_values=[""]
            )
            for name in texts:
                frame[name] = [bared(cell) if isinstance(cell, str) else None for cell in frame[name]]
        case _:
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return list(_plain_rows(frame, table.fields))


class _Writer:
    """A file that appears whole or not at all, put together from blocks."""

    def __init__(self, path: Path, table: Table) -> None:
        self._path, self._schema = path, arrow_schema(table)
        self._draft = path.with_name(f".{path.name}.part")

    def __enter__(self) -> _Writer:
        self._file: Any
        if self._path.suffix.lower() == ".parquet":
            from pyarrow import parquet

            self._file = parquet.ParquetWriter(self._draft, self._schema)
        else:
            self._file = self._draft.open("wb")
        if self._path.suffix.lower() == ".csv":
            self._file.write((",".join(self._schema.names) + "\n").encode())
        return self

    def append(self, block: bytes) -> None:
        if not block:
            return
        if self._path.suffix.lower() == ".parquet":
            import pyarrow as pa

            self._file.write_table(pa.ipc.open_stream(block).read_all())
        else:
            self._file.write(block)

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._file.close()
        if error is None:
            self._draft.replace(self._path)
        else:
            self._draft.unlink(missing_ok=True)


def _plain_rows(part: pd.DataFrame, fields: tuple[Field, ...]) -> Iterator[dict[str, Any]]:
    kinds = {"integer": int, "number": float, "flag": bool, "text": str}
    casts = [kinds[field.kind] for field in fields]
    names = [field.name for field in fields]
    for row in part.itertuples(index=False, name=None):
        yield {
            name: None if pd.isna(value) else cast(value)
            for name, cast, value in zip(names, casts, row, strict=True)
        }
