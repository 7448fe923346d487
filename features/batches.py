"""Tables that only grow: files that tasks wrote on their own are committed as a batch, and a batch that the
work around it did not finish is taken back."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from features.lake import DataFile, Lake, add_action
from features.migrating import added, as_declared, delta_schema, is_current, widened
from twin.core.tables import Table

if TYPE_CHECKING:
    from deltalake import DeltaTable

_BATCH = "brokertwin.batch"


def append(lake: Lake, table: Table, files: Sequence[DataFile], batch: str) -> None:
    """One log entry for files that are there. A column that was declared since the last time is added; the
    files of before are left as they are, unless a type has become another."""
    from deltalake import CommitProperties
    from deltalake.transaction import create_table_with_add_actions

    actions = [add_action(file) for file in files]
    commit = CommitProperties(custom_metadata={_BATCH: batch})
    current = lake.existing(table)
    if current is None:
        create_table_with_add_actions(
            lake.uri(table), delta_schema(table), actions, mode="error", partition_by=list(table.parts),
            name=table.name, description=table.description, commit_properties=commit,
        )  # fmt: skip
    else:
        current = _migrated(lake, table, current)
        current.create_write_transaction(
            list(actions),
            "append",
            current.schema(),
            partition_by=list(table.parts),
            commit_properties=commit,
        )
    lake.seal(table)


def remove(lake: Lake, table: Table, predicate: str, batch: str | None = None) -> int:
    """Rows for which a predicate holds; returns how many there were."""
    from deltalake import CommitProperties

    current = lake.existing(table)
    if current is None:
        return 0
    commit = CommitProperties(custom_metadata={_BATCH: batch} if batch else {})
    removed = int(current.delete(predicate, commit_properties=commit)["num_deleted_rows"] or 0)
    lake.seal(table)
    return removed


def last_batch(lake: Lake, table: Table) -> str | None:
    current = lake.existing(table)
    commits = current.history() if current else []
    return next((commit[_BATCH] for commit in commits if commit.get(_BATCH)), None)


def undo(lake: Lake, table: Table, batch: str) -> None:
    """The table as it was before the batch, which is its last."""
    current = lake.delta(table)
    first = min(commit["version"] for commit in current.history() if commit.get(_BATCH) == batch)
    if first:
        current.restore(first - 1)
    else:
        current.delete()
    lake.seal(table)


def _migrated(lake: Lake, table: Table, current: DeltaTable) -> DeltaTable:
    if is_current(table, current):
        return current
    if widened(table, current):
        _rewrite(lake, table, current)
    else:
        names = {field.name for field in added(table, current)}
        current.alter.add_columns([one for one in delta_schema(table).fields if one.name in names])
    lake.seal(table)
    return lake.delta(table)


def _rewrite(lake: Lake, table: Table, current: DeltaTable) -> None:
    """File by file: all of them at once may be more than fits."""
    import pyarrow as pa
    from pyarrow import parquet

    files, written = lake.files(table), []
    told = pa.table(current.get_add_actions()).to_pylist()
    for one in told:
        part = {name: str(value) for name, value in (one["partition"] or {}).items()}
        rows = parquet.read_table(files.path(one["path"]), filesystem=files.system, partitioning=None)
        for name in table.parts:
            if name not in rows.column_names:
                rows = rows.append_column(name, pa.array([part[name]] * len(rows)))
        rows = as_declared(table, rows).drop_columns(list(table.parts))
        folder = "/".join(f"{name}={part[name]}" for name in table.parts)
        path = f"{folder}/rewritten-{uuid.uuid4().hex}.parquet".lstrip("/")
        parquet.write_table(
            rows, files.path(path), filesystem=files.system, compression="zstd", write_page_checksum=True
        )
        size = files.sizes([path])[path]
        written.append(add_action(DataFile(path, int(size or 0), len(rows), part)))
    current.create_write_transaction(
        list(written), "overwrite", delta_schema(table), partition_by=list(table.parts)
    )
