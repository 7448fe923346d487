"""Files of harness runs, read side by side on Spark.

A task takes some of the files, writes their samples to Parquet itself and returns what each run amounts to:
a run lives in one file, so nothing is exchanged between tasks. Files that a lost or repeated task wrote are
never committed. A file that cannot be read costs nothing but itself.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from features.arrow import arrow_schema
from features.lake import DataFile
from twin.core.tables import RUNS, SAMPLES
from twin.sources.documents import Refused
from twin.sources.harness.runs import Content, ReadRuns, read_runs

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import FileSystem
    from pyarrow.parquet import ParquetWriter
    from pyspark.sql import SparkSession

# text that one task reads; it takes a few times as much memory
_BYTES_PER_TASK = 64 * 1024 * 1024
# samples that are written together
_ROWS_PER_GROUP = 1_000_000


@dataclass(frozen=True)
class Archived:
    """What became of the files of one ingestion."""

    runs: pa.Table
    samples: Sequence[DataFile]
    # by path; a file that was read before is neither refused nor read again
    refused: Mapping[str, str]
    known: Sequence[str]


def read_archive(
    spark: SparkSession,
    samples_uri: str,
    files: Sequence[Path],
    batch: str,
    known: Iterable[Content] = (),
    source: str | None = None,
) -> Archived:
    """`known`: hashes of files and of their descriptions whose runs are there already."""
    import pyarrow as pa

    tasks = _tasks(files, spark.sparkContext.defaultParallelism)
    work = _Work(samples_uri, batch, frozenset(known), source, date.today())

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for numbers in batches:
            for number in numbers.column(0).to_pylist():
                yield work.done(number, tasks[number])

    numbers = spark.range(0, len(tasks), 1, len(tasks))
    answers = numbers.mapInArrow(read, "outcome string, runs binary").collect()
    outcomes = [json.loads(answer.outcome) for answer in answers]
    tables = [pa.ipc.open_stream(answer.runs).read_all() for answer in answers]
    return Archived(
        runs=pa.concat_tables(tables),
        samples=[DataFile(**file) for outcome in outcomes for file in outcome["samples"]],
        refused={path: reason for outcome in outcomes for path, reason in outcome["refused"].items()},
        known=[path for outcome in outcomes for path in outcome["known"]],
    )


def _tasks(files: Sequence[Path], cores: int) -> list[list[Path]]:
    """About the same amount of text for each; the largest files first."""
    sizes = {file: _size(file) for file in files}
    count = min(max(-(-sum(sizes.values()) // _BYTES_PER_TASK), min(cores, len(files))), len(files))
    ordered = sorted(files, key=lambda file: (-sizes[file], str(file)))
    return [ordered[at::count] for at in range(count)]


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:  # read as any other, and refused
        return 0


@dataclass
class _Outcome:
    runs: list[Mapping[str, Any]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    known: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Work:
    """What all tasks have in common."""

    samples_uri: str
    batch: str
    known: frozenset[Content]
    source: str | None
    today: date

    def done(self, task: int, files: Sequence[Path]) -> pa.RecordBatch:
        import pyarrow as pa

        outcome = _Outcome()
        with _SampleWriter(self.samples_uri, f"{self.batch}-{task}") as samples:
            for file in files:
                self._take(file, outcome, samples.write)
        told = {
            "refused": outcome.refused,
            "known": outcome.known,
            "samples": [asdict(written) for written in samples.written],
        }
        rows = [{**run, "batch": self.batch, "ingested_at": self.today} for run in outcome.runs]
        runs = pa.Table.from_pylist(rows, arrow_schema(RUNS))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, runs.schema) as stream:
            stream.write_table(runs)
        return pa.RecordBatch.from_pylist(
            [{"outcome": json.dumps(told), "runs": sink.getvalue().to_pybytes()}],
            pa.schema([("outcome", pa.string()), ("runs", pa.binary())]),
        )

    def _take(self, file: Path, outcome: _Outcome, write: Callable[[ReadRuns], None]) -> None:
        try:
            read = read_runs(file, self.source, self.known)
        except Refused as error:
            outcome.refused[str(file)] = str(error)
            return
        except Exception as error:  # what no importer thought of must not cost the other files either
            outcome.refused[str(file)] = f"{file.name} cannot be read: {type(error).__name__}: {error}"
            return
        if read is None:
            outcome.known.append(str(file))
        else:
            outcome.runs += read.runs
            write(read)


class _SampleWriter:
    """Samples of many files in few: one for each part of the table and set of columns."""

    def __init__(self, uri: str, name: str) -> None:
        from pyarrow.fs import FileSystem

        self.written: list[DataFile] = []
        # a task that is tried again must not write into the files of the first try
        self._name = f"{name}-{uuid.uuid4().hex[:8]}"
        self._files: FileSystem
        self._files, self._root = FileSystem.from_uri(uri)
        self._open: dict[tuple[Any, ...], _Part] = {}

    def __enter__(self) -> _SampleWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.written = [part.close() for part in self._open.values()]

    def write(self, read: ReadRuns) -> None:
        if not len(read.samples):
            return
        columns = [name for name in SAMPLES.columns if name in read.samples.column_names]
        key = (read.tool, read.month, *columns)
        if key not in self._open:
            parts = {"tool": read.tool, "month": read.month}
            folder = "/".join(f"{name}={value}" for name, value in parts.items())
            self._files.create_dir(f"{self._root}/{folder}", recursive=True)
            path = f"{folder}/{self._name}-{len(self._open)}.parquet"
            self._open[key] = _Part(self._files, self._root, path, parts)
        self._open[key].add(read.samples.select(columns))


class _Part:
    def __init__(self, files: FileSystem, root: str, path: str, parts: Mapping[str, str]) -> None:
        self._files, self._root, self._path, self._parts = files, root, path, parts
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._writer: ParquetWriter | None = None

    def add(self, samples: pa.Table) -> None:
        self._waiting.append(samples)
        if sum(map(len, self._waiting)) >= _ROWS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        names = self._waiting[0].column_names
        declared = arrow_schema(SAMPLES)
        schema = pa.schema([declared.field(name) for name in names])
        table = pa.concat_tables(self._waiting, promote_options="default").cast(schema)
        self._waiting = []
        if self._writer is None:
            texts = [field.name for field in schema if pa.types.is_string(field.type)]
            self._writer = ParquetWriter(
                f"{self._root}/{self._path}", schema, filesystem=self._files, compression="zstd",
                write_page_checksum=True,
                # figures hardly repeat: a dictionary of them would cost time and save nothing
                use_dictionary=[*texts, "run", "threads", "interval_s"],
                column_encoding={"line": "DELTA_BINARY_PACKED"},
            )  # fmt: skip
        self._writer.write_table(table)
        self._rows += len(table)

    def close(self) -> DataFile:
        if self._waiting:
            self._flush()
        assert self._writer is not None
        self._writer.close()
        size = self._files.get_file_info(f"{self._root}/{self._path}").size
        return DataFile(self._path, size, self._rows, dict(self._parts))
