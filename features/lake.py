"""The lake: Delta tables that Spark writes and `deltalake` commits. No other module touches a Delta log.

A write puts Parquet files into a fresh folder of the table and then commits them in one log entry, so a
reader sees the whole write or none of it, and a write that was killed leaves files that no version names.
Each commit carries the content's fingerprint: writing the content that is already there commits nothing.

A table that only grows takes files that tasks wrote on their own (`append`): each commit names its batch, and
a batch that the work around it did not finish is taken back (`undo`).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from features.arrow import arrow_schema
from twin.core.fields import flatten
from twin.core.settings import Settings
from twin.core.tables import Table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction
    from filelock import FileLock
    from pyarrow.parquet import FileMetaData
    from pyspark.sql import DataFrame, SparkSession

_FINGERPRINT = "brokertwin.fingerprint"
_ROWS = "brokertwin.rows"
_EXPECTATIONS = "brokertwin.expectations"
_BATCH = "brokertwin.batch"
# files of a part that are smaller than this are put together
_SMALL_BYTES = 32 * 1024 * 1024


class NoSuchTable(Exception):
    """The table has never been written."""


class NoSuchVersion(Exception):
    """The table never had this version."""


class WriteFailed(Exception):
    """A table could not be written; what was there before still is."""


class BadPredicate(Exception):
    """A predicate that is not SQL over the table's columns."""


@dataclass(frozen=True)
class Written:
    """What a write left behind."""

    table: str
    version: int
    rows: int
    fingerprint: str
    changed: bool
    # what the expectations said of this content, where it was asked
    expectations: str | None = None


@dataclass(frozen=True)
class DataFile:
    """A Parquet file that was written and waits for its commit."""

    # below the table's folder
    path: str
    size: int
    rows: int
    parts: Mapping[str, str]


class Lake:
    def __init__(self, settings: Settings) -> None:
        self._root = settings.lake_uri.rstrip("/")
        self._home = settings.home

    def uri(self, table: Table) -> str:
        return f"{self._root}/{table.layer}/{table.name}"

    def replace(self, table: Table, frame: DataFrame, expectations: str | None = None) -> Written:
        """Make `frame` the table's content, unless somebody else changed the table meanwhile. What the
        expectations said of it stays with this version."""
        return self._commit(table, frame, self._existing(table), expectations)

    def replace_parts(self, table: Table, frame: DataFrame, part: str) -> Written:
        """Make `frame` the content of the parts it has rows of; the other parts stay."""
        current = self._existing(table)
        if current is not None:
            kept = self._frame(table, frame.sparkSession, current)
            frame = kept.join(frame.select(part).distinct(), part, "left_anti").unionByName(frame)
        return self._commit(table, frame, current)

    def append(self, table: Table, files: Sequence[DataFile], batch: str) -> None:
        """One log entry for files that are there. A column that was declared since the last time is added;
        the files of before are left as they are."""
        from deltalake import CommitProperties
        from deltalake.transaction import create_table_with_add_actions

        actions = [_add_action(file) for file in files]
        commit = CommitProperties(custom_metadata={_BATCH: batch})
        current = self._existing(table)
        if current is None:
            create_table_with_add_actions(
                self.uri(table), _delta_schema(table), actions, mode="error", partition_by=list(table.parts),
                name=table.name, description=table.description, commit_properties=commit,
            )  # fmt: skip
            return
        there = {field.name for field in current.schema().fields}
        new = [field for field in _delta_schema(table).fields if field.name not in there]
        if new:
            current.alter.add_columns(new)
        current.create_write_transaction(
            list(actions),
            "append",
            current.schema(),
            partition_by=list(table.parts),
            commit_properties=commit,
        )

    def remove(self, table: Table, predicate: str, batch: str | None = None) -> int:
        """Rows for which a predicate holds; returns how many there were."""
        from deltalake import CommitProperties

        current = self._existing(table)
        if current is None:
            return 0
        commit = CommitProperties(custom_metadata={_BATCH: batch} if batch else {})
        return int(current.delete(predicate, commit_properties=commit)["num_deleted_rows"] or 0)

    def last_batch(self, table: Table) -> str | None:
        current = self._existing(table)
        commits = current.history() if current else []
        return next((commit[_BATCH] for commit in commits if commit.get(_BATCH)), None)

    def undo(self, table: Table, batch: str) -> None:
        """The table as it was before the batch, which is its last."""
        current = self.delta(table)
        first = min(commit["version"] for commit in current.history() if commit.get(_BATCH) == batch)
        if first:
            current.restore(first - 1)
        else:
            current.delete()

    def compact(self, table: Table) -> int:
        """Small files of a part put together; returns how many there are less."""
        current = self._existing(table)
        if current is None:
            return 0
        told = current.optimize.compact(target_size=_SMALL_BYTES)
        return int(told["numFilesRemoved"]) - int(told["numFilesAdded"])

    def forget(self, table: Table, hours: float) -> int:
        """Files that no version of the last hours needs are deleted; returns how many."""
        current = self._existing(table)
        if current is None:
            return 0
        return len(current.vacuum(int(hours), dry_run=False, enforce_retention_duration=False))

    def holds(self, table: Table, rows: Iterable[BaseModel], part: str) -> bool:
        """Whether the parts that these rows belong to consist of exactly them already; without a JVM."""
        import pyarrow as pa
        from pyarrow import compute

        order = [(name, "ascending") for name in table.key]
        asked = pa.Table.from_pylist([flatten(row) for row in rows], arrow_schema(table)).sort_by(order)
        try:
            there = self.arrow(table)
        except NoSuchTable:
            return False
        return bool(there.filter(compute.is_in(there[part], compute.unique(asked[part]))).equals(asked))

    def exclusive(self) -> FileLock:
        """Held while one change of several tables is made, so that a second one waits for it."""
        from filelock import FileLock

        self._home.mkdir(parents=True, exist_ok=True)
        return FileLock(self._home / "lake.lock")

    def _commit(
        self, table: Table, frame: DataFrame, current: DeltaTable | None, expectations: str | None = None
    ) -> Written:
        """Against the snapshot `current`: a change that somebody else made since then fails this one."""
        from features.schemas import spark_schema

        schema = spark_schema(table)
        frame = frame.select(*(frame[field.name].cast(field.dataType) for field in schema))
        frame.persist()
        try:
            rows, fingerprint = _fingerprint(frame)
            last = _last_commit(table, current) if current else None
            if last and (last.fingerprint, last.expectations) == (fingerprint, expectations):
                return last
            noted = {_FINGERPRINT: fingerprint, _ROWS: str(rows)}
            if expectations is not None:
                noted[_EXPECTATIONS] = expectations
            try:
                self._add(table, current, self._write_files(table, frame), noted)
            except Exception as error:  # Spark's, the file system's, or a commit that came in between
                raise WriteFailed(f"table {table.name} could not be written: {_root_cause(error)}") from error
        finally:
            frame.unpersist()
        return Written(table.name, self.version(table), rows, fingerprint, True, expectations)

    def _add(
        self, table: Table, current: DeltaTable | None, files: list[AddAction], noted: dict[str, str]
    ) -> None:
        """One log entry: from here on these files are the table."""
        from deltalake import CommitProperties
        from deltalake.transaction import create_table_with_add_actions

        commit = CommitProperties(custom_metadata=noted)
        if current is None:
            create_table_with_add_actions(
                self.uri(table), _delta_schema(table), list(files), mode="error", name=table.name,
                description=table.description, commit_properties=commit,
            )  # fmt: skip
        else:
            current.create_write_transaction(
                list(files), "overwrite", _delta_schema(table), commit_properties=commit
            )

    def delta(self, table: Table, version: int | None = None) -> DeltaTable:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        try:
            newest = DeltaTable(self.uri(table))
        except TableNotFoundError as error:
            raise NoSuchTable(f"table {table.name} does not exist yet") from error
        if version is not None:
            try:
                newest.load_as_version(version)
            except (DeltaError, OverflowError) as error:
                raise NoSuchVersion(
                    f"table {table.name} has versions 0 to {newest.version()}, not {version}"
                ) from error
        return newest

    def spark(self, table: Table, spark: SparkSession, version: int | None = None) -> DataFrame:
        """The table as Spark reads it: the files of one version, never the folder."""
        return self._frame(table, spark, self.delta(table, version))

    def spark_files(self, table: Table, spark: SparkSession, files: Sequence[DataFile]) -> DataFrame:
        """Some files of a table."""
        return self._read(table, spark, [f"{self.uri(table)}/{file.path}" for file in files])

    def extremes(self, table: Table, files: Sequence[DataFile]) -> pa.Table:
        """Of each file a row with the least and one with the greatest value of every column, and one that is
        empty where the file has a gap: what its footer tells. A range that these keep is kept by all rows."""
        import pyarrow as pa
        from pyarrow import parquet
        from pyarrow.fs import FileSystem

        system, root = FileSystem.from_uri(self.uri(table))
        footers = [parquet.read_metadata(f"{root}/{file.path}", filesystem=system) for file in files]
        rows = [
            dict(file.parts) | row
            for file, told in zip(files, footers, strict=True)
            for row in _told_by(told)
        ]
        return pa.Table.from_pylist(rows, arrow_schema(table))

    def pandas(self, table: Table, version: int | None = None) -> pd.DataFrame:
        """The table without a JVM, in a stable order."""
        frame: pd.DataFrame = self.arrow(table, version).to_pandas()
        return frame

    def arrow(self, table: Table, version: int | None = None, where: str | None = None) -> pa.Table:
        """The table without a JVM, in the order of its key; `where` is a SQL predicate over its columns."""
        import pyarrow as pa

        delta = self.delta(table, version)
        if where is None:
            rows = delta.to_pyarrow_table()
        else:
            from deltalake import QueryBuilder
            from deltalake.exceptions import DeltaError

            query = f"SELECT * FROM {table.name} WHERE ({where})"
            try:
                rows = pa.table(QueryBuilder().register(table.name, delta).execute(query).read_all())
            except DeltaError as error:
                raise BadPredicate(f"{where!r}: {str(error).splitlines()[0]}") from error
        schema = arrow_schema(table)
        for field in schema:
            if field.name not in rows.column_names:  # written before the column was declared
                rows = rows.append_column(field, pa.nulls(len(rows), field.type))
        ordered = rows.select(list(table.columns)).cast(schema)
        return ordered.sort_by([(name, "ascending") for name in table.key])

    def columns(self, table: Table, *names: str) -> list[dict[str, Any]]:
        """Some columns of a table, in any order, without reading the others; nothing of one never written."""
        current = self._existing(table)
        if current is None:
            return []
        rows: list[dict[str, Any]] = current.to_pyarrow_table(columns=list(names)).to_pylist()
        return rows

    def version(self, table: Table) -> int:
        return int(self.delta(table).version())

    def rows(self, table: Table) -> int | None:
        """How many there are, told by the log alone; None for a table that was never written."""
        import pyarrow as pa

        current = self._existing(table)
        if current is None:
            return None
        files = pa.table(current.get_add_actions(flatten=True))
        return sum(int(rows) for rows in files["num_records"].to_pylist())

    def written(self, table: Table) -> Written:
        """The last commit of a table."""
        return _last_commit(table, self.delta(table))

    def _existing(self, table: Table) -> DeltaTable | None:
        try:
            return self.delta(table)
        except NoSuchTable:
            return None

    def _frame(self, table: Table, spark: SparkSession, delta: DeltaTable) -> DataFrame:
        return self._read(table, spark, delta.file_uris())

    def _read(self, table: Table, spark: SparkSession, files: Sequence[str]) -> DataFrame:
        from features.schemas import spark_schema

        if not files:
            return spark.createDataFrame([], spark_schema(table))
        return spark.read.option("basePath", self.uri(table)).schema(spark_schema(table)).parquet(*files)

    def _write_files(self, table: Table, frame: DataFrame) -> list[AddAction]:
        from pyarrow import parquet
        from pyarrow.fs import FileSelector, FileSystem

        folder = f"write-{uuid.uuid4().hex}"
        frame.coalesce(1).write.parquet(f"{self.uri(table)}/{folder}")
        files, root = FileSystem.from_uri(self.uri(table))
        actions = []
        for info in files.get_file_info(FileSelector(f"{root}/{folder}")):
            if info.base_name.endswith(".parquet"):
                rows = parquet.read_metadata(info.path, filesystem=files).num_rows
                written = DataFile(f"{folder}/{info.base_name}", info.size, rows, {})
                actions.append(_add_action(written, int(info.mtime_ns // 1_000_000)))
        return actions


def _told_by(footer: FileMetaData) -> tuple[dict[str, Any], ...]:
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    gaps: dict[str, Any] = {}
    for group in range(footer.num_row_groups):
        for at in range(footer.num_columns):
            column = footer.row_group(group).column(at)
            name, told = column.path_in_schema, column.statistics
            if told.has_min_max:
                least[name] = min(least.get(name, told.min), told.min)
                greatest[name] = max(greatest.get(name, told.max), told.max)
            if told.null_count:
                gaps[name] = None
    return least, greatest, least | gaps


def _add_action(file: DataFile, modified_ms: int = 0) -> AddAction:
    from deltalake.transaction import AddAction

    return AddAction(
        path=file.path,
        size=file.size,
        partition_values=dict(file.parts),
        modification_time=modified_ms,
        data_change=True,
        stats=json.dumps({"numRecords": file.rows}),
    )


def _root_cause(error: Exception) -> str:
    """The innermost reason of a Spark error, in a line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes or lines or [type(error).__name__])[-1 if causes else 0].removeprefix("Caused by:").strip()


def _last_commit(table: Table, delta: DeltaTable) -> Written:
    (commit,) = delta.history(1)
    return Written(
        table.name,
        delta.version(),
        int(commit[_ROWS]),
        commit[_FINGERPRINT],
        changed=False,
        expectations=commit.get(_EXPECTATIONS),
    )


def _fingerprint(frame: DataFrame) -> tuple[int, str]:
    """Row count and an order-free digest of all rows."""
    from pyspark.sql import functions as f

    # a null must not hash like its neighbour's absence, so every cell carries its null flag
    cells = [part for name in frame.columns for part in (f.col(name), f.col(name).isNull())]
    hashes = [f.xxhash64(f.lit(seed), *cells).cast("decimal(38,0)") for seed in (1, 2)]
    first: Any = frame.agg(f.count("*"), *(f.sum(value) for value in hashes)).first()
    rows, one, two = first
    return int(rows), f"{rows}-{int(one or 0):x}-{int(two or 0):x}"


def _delta_schema(table: Table) -> Any:
    from deltalake import Field, Schema
    from deltalake.schema import PrimitiveType

    types = {"text": "string", "integer": "long", "number": "double", "flag": "boolean", "date": "date"}
    return Schema(
        [
            Field(
                field.name,
                PrimitiveType(types[field.kind]),
                nullable=True,
                metadata={"comment": field.description},
            )
            for field in table.fields
        ]
    )
