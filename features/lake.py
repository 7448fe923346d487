"""The lake: Delta tables that Spark writes and `deltalake` commits. No module above
this package touches a Delta log.

A write puts Parquet files into a fresh folder of the table and then commits them in one log entry, so a
reader sees the whole write or none of it, and a write that was killed leaves files that no version names.
Each commit carries the content's fingerprint: writing the content that is already there commits nothing.

Nothing is read that is not what was written (`table_files.py`): a damaged table is never taken for an empty
or an older one. Tables that only grow are written by `batches.py`; what keeps tables small and sound is in
`upkeep.py`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pydantic import BaseModel

from features.arrow import arrow_schema
from features.damage import Damage, Damaged, Unreadable
from features.migrating import as_declared, declared_columns, delta_schema, is_current, kinds_of
from features.predicates import checked, failed
from features.table_files import TableFiles, data_damages, log_damage, looked_at
from twin.core.fields import flatten
from twin.core.settings import Settings
from twin.core.tables import Table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction
    from filelock import FileLock
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_FINGERPRINT = "brokertwin.fingerprint"
_ROWS = "brokertwin.rows"
_EXPECTATIONS = "brokertwin.expectations"


class NoSuchTable(Exception):
    """The table has never been written."""


class NoSuchVersion(Exception):
    """The table never had this version, or has it no longer."""


class WriteFailed(Exception):
    """A table could not be written; what was there before still is."""


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
        self._settings = settings

    def uri(self, table: Table) -> str:
        return f"{self._root}/{table.layer}/{table.name}"

    def replace(self, table: Table, frame: DataFrame, expectations: str | None = None) -> Written:
        """Make `frame` the table's content, unless somebody else changed the table meanwhile. What the
        expectations said of it stays with this version."""
        return self._commit(table, frame, self.existing(table), expectations)

    def replace_parts(self, table: Table, frame: DataFrame, part: str) -> Written:
        """Make `frame` the content of the parts it has rows of; the other parts stay."""
        current = self.existing(table)
        if current is not None:
            kept = self._frame(table, frame.sparkSession, current)
            frame = kept.join(frame.select(part).distinct(), part, "left_anti").unionByName(frame)
        return self._commit(table, frame, current)

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

        return FileLock(self._settings.folder() / "lake.lock")

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
            self._add(table, current, self._write_files(table, frame), noted)
        except Unreadable:  # what the rows are made of, which says so itself
            raise
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
                self.uri(table), delta_schema(table), list(files), mode="error", name=table.name,
                description=table.description, commit_properties=commit,
            )  # fmt: skip
        else:
            # all that came before in one file: an old log entry that is lost later takes nothing with it
            if current.version() not in self.files(table).log().checkpoints:
                current.create_checkpoint()
            current.create_write_transaction(
                list(files), "overwrite", delta_schema(table), commit_properties=commit
            )
        self.seal(table)

    def delta(self, table: Table, version: int | None = None) -> DeltaTable:
        """The newest version or an older one, whose log is sound."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        files = self.files(table)
        log, sums, damage = looked_at(files)
        if log.newest < 0 and sums.version < 0:
            raise NoSuchTable(f"table {table.name} does not exist yet")
        if damage is not None:
            raise Damaged(table.name, damage)
        if version is not None and version not in log.versions:
            first, last = log.versions[0], log.versions[-1]
            raise NoSuchVersion(f"table {table.name} has versions {first} to {last}, not {version}")
        if version is not None and (damage := log_damage(files, log, sums, version)):
            raise NoSuchVersion(f"version {version} of table {table.name} cannot be told any more: {damage}")
        try:
            return DeltaTable(self.uri(table), version=version)
        except DeltaError as error:
            told = Damage("_delta_log", f"cannot be read: {str(error).splitlines()[0]}")
            raise Damaged(table.name, told) from error

    def files(self, table: Table) -> TableFiles:
        return TableFiles(self.uri(table))

    def seal(self, table: Table) -> None:
        """After every commit: what was written is what has to be read from now on."""
        self.files(table).seal(data_files(self.delta(table)))

    def readable(self, table: Table, version: int | None = None) -> DeltaTable:
        """A version whose data files are sound as well, in columns that this release understands."""
        delta, files = self.delta(table, version), self.files(table)
        is_current(table, delta)
        damages = data_damages(files, files.sums(), data_files(delta))
        if not damages:
            return delta
        if version is not None:
            newest = data_files(self.delta(table))
            if all(one.file not in newest for one in damages):
                raise NoSuchVersion(f"version {version} of table {table.name} is gone: {damages[0]}")
        raise Damaged(table.name, damages[0])

    def spark(self, table: Table, spark: SparkSession, version: int | None = None) -> DataFrame:
        """The table as Spark reads it: the files of one version, never the folder."""
        return self._frame(table, spark, self.readable(table, version))

    def spark_files(self, table: Table, spark: SparkSession, files: Sequence[DataFile]) -> DataFrame:
        """Some files of a table."""
        from features.schemas import spark_schema

        paths = [f"{self.uri(table)}/{file.path}" for file in files]
        return self._read(table, spark, paths, spark_schema(table))

    def pandas(self, table: Table, version: int | None = None) -> pd.DataFrame:
        """The table without a JVM, in a stable order."""
        frame: pd.DataFrame = self.arrow(table, version).to_pandas()
        return frame

    def arrow(self, table: Table, version: int | None = None, where: str | None = None) -> pa.Table:
        """The table without a JVM, in the order of its key; `where` is a SQL predicate over its columns."""
        import pyarrow as pa

        delta = self.readable(table, version)
        if where is None:
            rows = self._rows(table, delta)
        else:
            from deltalake import QueryBuilder
            from deltalake.exceptions import DeltaError

            columns = f"(SELECT {declared_columns(table, delta)} FROM {table.name}) AS {table.name}"
            query = f"SELECT * FROM {columns} WHERE ({checked(where, table)})"
            try:
                rows = pa.table(QueryBuilder().register(table.name, delta).execute(query).read_all())
            except DeltaError as error:
                raise failed(where, error) from error
        ordered = as_declared(table, rows)
        return ordered.sort_by([(name, "ascending") for name in table.key])

    def columns(self, table: Table, *names: str) -> list[dict[str, Any]]:
        """Some columns of a table, in any order, without reading the others; nothing of one never written."""
        try:
            delta = self.readable(table)
        except NoSuchTable:
            return []
        there = [name for name in names if name in kinds_of(delta.schema())]
        empty = dict.fromkeys(names)
        return [empty | row for row in self._rows(table, delta, there).to_pylist()]

    def _rows(self, table: Table, delta: DeltaTable, columns: list[str] | None = None) -> pa.Table:
        """Pages are compared with their own checksums, where whoever wrote them made some."""
        import pyarrow as pa
        from pyarrow.dataset import ParquetFragmentScanOptions

        checks = ParquetFragmentScanOptions(page_checksum_verification=True)
        try:
            rows = delta.to_pyarrow_dataset(filesystem=self.files(table).tree)
            return rows.to_table(columns=columns, fragment_scan_options=checks)
        except (pa.ArrowException, OSError) as error:
            told = Damage("a data file", f"cannot be read: {str(error).splitlines()[0]}")
            raise Damaged(table.name, told) from error

    def version(self, table: Table) -> int:
        return int(self.delta(table).version())

    def rows(self, table: Table) -> int | None:
        """How many there are, told by the log alone; None for a table that was never written."""
        import pyarrow as pa

        current = self.existing(table)
        if current is None:
            return None
        files = pa.table(current.get_add_actions(flatten=True))
        return sum(int(rows) for rows in files["num_records"].to_pylist())

    def written(self, table: Table) -> Written:
        """The last commit of a table."""
        return _last_commit(table, self.delta(table))

    def existing(self, table: Table) -> DeltaTable | None:
        try:
            return self.delta(table)
        except NoSuchTable:
            return None

    def _frame(self, table: Table, spark: SparkSession, delta: DeltaTable) -> DataFrame:
        """Columns of an older release become those of this one: Spark itself does not turn integers into
        numbers."""
        from pyspark.sql import functions as f

        from features.schemas import spark_schema

        there = kinds_of(delta.schema())
        written: dict[str, Any] = {field.name: there.get(field.name, field.kind) for field in table.fields}
        frame = self._read(table, spark, delta.file_uris(), spark_schema(table, written))
        return frame.select(*(f.col(one.name).cast(one.dataType) for one in spark_schema(table)))

    def _read(self, table: Table, spark: SparkSession, files: Sequence[str], schema: StructType) -> DataFrame:
        if not files:
            return spark.createDataFrame([], schema)
        return spark.read.option("basePath", self.uri(table)).schema(schema).parquet(*files)

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
                actions.append(add_action(written, int(info.mtime_ns // 1_000_000)))
        return actions


def data_files(delta: DeltaTable) -> dict[str, int]:
    """What a version consists of, and how large the log says it is."""
    import pyarrow as pa

    told = pa.table(delta.get_add_actions(flatten=True)).select(["path", "size_bytes"]).to_pylist()
    return {unquote(one["path"]): one["size_bytes"] for one in told}


def add_action(file: DataFile, modified_ms: int = 0) -> AddAction:
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
    """The innermost reason of a Spark error, in a line; else what Java said, behind Python's own words."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    of_java = [line for line in lines if line.startswith(": ")]
    reason = next(iter([*reversed(causes), *of_java, *lines]), type(error).__name__)
    return reason.removeprefix("Caused by:").removeprefix(":").strip()


def noted(delta: DeltaTable) -> dict[str, str]:
    """What a commit of ours says of its content."""
    commit = next(one for one in delta.history() if one["version"] == delta.version())
    return {name: commit[name] for name in (_FINGERPRINT, _ROWS, _EXPECTATIONS) if name in commit}


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
