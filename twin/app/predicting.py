"""Answers request files: predictions in request order in one file, rejects in a second."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from training.batch import FIRST_ROW, ROW, Asked, answer_on_spark, answers_of, rejects_of
from twin.app.requests import CHUNK, BadRequestFile, Chunk, read_chunks
from twin.core.checking import KNOWN
from twin.core.fields import Field
from twin.core.settings import Settings
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
    chunks = read_chunks(path, chunk)
    first, second = next(chunks), next(chunks, None)
    if second is None:
        requests = first.frame()
        requests[FIRST_ROW] = requests.groupby("request_id")[ROW].transform("min")
        return _written(out, [asked().answer(requests)])
    with _staging(settings) as folder:
        _stage(folder / "requests", chain((first, second), chunks))
        from features.session import running_spark

        with running_spark(settings, "predict") as spark:
            answer_on_spark(spark, folder / "requests", asked(), folder / "answers")
        return _written(out, _in_order(folder / "answers"))


@contextmanager
def _staging(settings: Settings) -> Iterator[Path]:
    root = settings.home / "staging"
    root.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _stage(folder: Path, chunks: Iterable[Chunk]) -> None:
    """Texts by every known column, so that all files have the same ones."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir()
    schema = pa.schema(
        [(ROW, pa.int64()), *((name, pa.string()) for name in ("request_id", *KNOWN, "extra"))]
    )
    for number, chunk in enumerate(chunks):
        frame = chunk.frame()
        frame["extra"] = [None if one is None else json.dumps(one) for one in frame["extra"]]
        columns = [
            pa.array(frame[field.name], field.type, from_pandas=True)
            if field.name in frame
            else pa.nulls(len(frame), field.type)
            for field in schema
        ]
        parquet.write_table(pa.Table.from_arrays(columns, schema=schema), folder / f"{number:06}.parquet")


def _in_order(folder: Path) -> Iterator[pd.DataFrame]:
    from pyarrow import parquet

    parts = [parquet.ParquetFile(path) for path in folder.glob("*.parquet")]
    held = [part for part in parts if part.metadata.num_rows]
    for part in sorted(held, key=lambda one: one.read_row_group(0, columns=[ROW])[ROW][0].as_py()):
        for batch in part.iter_batches():
            yield batch.to_pandas()


def _written(out: Path, parts: Iterable[pd.DataFrame]) -> Answered:
    rejects_path = out.with_name(f"{out.stem}.rejects{out.suffix}")
    answered = excused = rejected = 0
    with _Writer(out, PREDICTIONS) as answers, _Writer(rejects_path, REJECTS) as rejects:
        for part in parts:
            good, bad = answers_of(part), rejects_of(part)
            answers.write(good)
            rejects.write(bad)
            answered += int(good["excuse"].isna().sum())
            excused += int(good["excuse"].notna().sum())
            rejected += bad[ROW].nunique()
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
            frame = pd.read_csv(path, dtype={"request_id": str, "model_version": str, "field": str})
        case _:
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return list(_plain_rows(frame, table.fields))


class _Writer:
    """A file that appears whole or not at all, written part by part."""

    def __init__(self, path: Path, table: Table) -> None:
        import pyarrow as pa

        self._path, self._fields = path, table.fields
        self._draft = path.with_name(f".{path.name}.part")
        kinds = {"text": pa.string(), "integer": pa.int64(), "number": pa.float64(), "flag": pa.bool_()}
        self._schema = pa.schema([(field.name, kinds[field.kind]) for field in table.fields])

    def __enter__(self) -> _Writer:
        match self._path.suffix.lower():
            case ".parquet":
                from pyarrow import parquet

                self._parquet: Any = parquet.ParquetWriter(self._draft, self._schema)
            case ".csv":
                self._file: Any = self._draft.open("w", newline="", encoding="utf-8")
                self._file.write(",".join(self._schema.names) + "\n")
            case _:
                self._file = self._draft.open("w", encoding="utf-8")
        return self

    def write(self, part: pd.DataFrame) -> None:
        if part.empty:
            return
        match self._path.suffix.lower():
            case ".parquet":
                import pyarrow as pa

                self._parquet.write_table(pa.Table.from_pandas(part, self._schema, preserve_index=False))
            case ".csv":
                part.to_csv(self._file, header=False, index=False, lineterminator="\n")
            case _:
                for row in _plain_rows(part, self._fields):
                    self._file.write(json.dumps(row) + "\n")

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        (self._parquet if self._path.suffix.lower() == ".parquet" else self._file).close()
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
