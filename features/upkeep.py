"""What keeps tables small: files put together, old versions let go, leftovers of killed writes removed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from features.lake import Lake, NoSuchTable, data_files
from features.table_files import Log, TableFiles
from twin.core.tables import Table

if TYPE_CHECKING:
    from deltalake import DeltaTable

# files of a part that are smaller than this are put together
_SMALL_BYTES = 32 * 1024 * 1024
_WRITING = "write-"


def compact(lake: Lake, table: Table) -> int:
    """Small files of a part put together; returns how many there are less. What is damaged is not copied."""
    try:
        current = lake.readable(table)
    except NoSuchTable:
        return 0
    told = current.optimize.compact(target_size=_SMALL_BYTES)
    lake.seal(table)
    return int(told["numFilesRemoved"]) - int(told["numFilesAdded"])


def forget(lake: Lake, table: Table, hours: float, dry_run: bool = False) -> int:
    """Files that no version of the last hours needs are deleted; returns how many."""
    current = lake.existing(table)
    if current is None:
        return 0
    gone = current.vacuum(int(hours), dry_run=dry_run, enforce_retention_duration=False)
    if not dry_run:
        lake.seal(table)
        _forget_digests(lake.files(table))
    return len(gone)


def let_go(lake: Lake, table: Table, days: int, versions: int, dry_run: bool = False) -> int:
    """Versions older than so many days are given up, but not that many of the newest; `twin export --version`
    says that they are gone. Returns how many."""
    current = lake.existing(table)
    if current is None:
        return 0
    files = lake.files(table)
    log = files.log()
    first = _first_kept(log.versions, commit_times(files, log), days, versions)
    gone = log.versions.index(first)
    if gone and not dry_run:
        _delete_files(current, files, log.versions, first)
        _cut_log(lake, table, first)
    return gone


def commit_times(files: TableFiles, log: Log) -> dict[int, datetime]:
    """When versions were committed, as far as their entries can be read."""
    found = {}
    for version, name in log.entries.items():
        for line in files.read(name).splitlines():
            try:
                stamp = json.loads(line)["commitInfo"]["timestamp"]
                found[version] = datetime.fromtimestamp(stamp / 1000, UTC)
                break
            except (ValueError, KeyError, TypeError):
                continue
    return found


def leftovers(lake: Lake, table: Table) -> list[str]:
    """Folders of writes that were killed: no entry of the log names them."""
    files = lake.files(table)
    folders = {name.split("/")[0] for name in files.names(recursive=True) if name.startswith(_WRITING)}
    if not folders:
        return []
    named = b"".join(files.read(name) for name in files.log().entries.values()).decode(errors="replace")
    current = lake.existing(table)
    kept = {name.split("/")[0] for name in data_files(current)} if current else set()
    return sorted(folder for folder in folders - kept if folder not in named)


def remove_leftovers(lake: Lake, table: Table) -> int:
    """The lake's lock is held: nobody is just writing one."""
    files = lake.files(table)
    found = leftovers(lake, table)
    for folder in found:
        files.system.delete_dir(files.path(folder))
    return len(found)


def _first_kept(versions: list[int], times: dict[int, datetime], days: int, newest: int) -> int:
    """Of versions in a row; one whose time is not known goes with the one before it."""
    oldest = datetime.now(UTC) - timedelta(days=days)
    young = next((at for at in versions if at in times and times[at] >= oldest), versions[-1])
    return min(young, versions[-min(max(newest, 1), len(versions))])


def _delete_files(current: DeltaTable, files: TableFiles, versions: list[int], first: int) -> None:
    """Data files that only versions before the first to keep have. Delta's own vacuum would add versions."""
    needed: set[str] = set()
    named: set[str] = set()
    for version in versions:
        current.load_as_version(version)
        (needed if version >= first else named).update(data_files(current))
    for name, size in files.sizes(sorted(named - needed)).items():
        if size is not None:
            files.system.delete_file(files.path(name))


def _cut_log(lake: Lake, table: Table, first: int) -> None:
    """A checkpoint takes the place of what is before the first version to keep."""
    from deltalake import DeltaTable

    files = lake.files(table)
    if first not in files.log().checkpoints:
        DeltaTable(lake.uri(table), version=first).create_checkpoint()
    log = files.log()
    before = [name for version, name in log.entries.items() if version < first]
    before += [name for version, names in log.checkpoints.items() if version < first for name in names]
    for name in sorted(before):
        files.system.delete_file(files.path(name))
    lake.seal(table)
    _forget_digests(files)


def _forget_digests(files: TableFiles) -> None:
    """Of files that are not there any more and should not be."""
    sums = files.sums()
    there = files.sizes(list(sums.digests))
    files.note(
        replace(sums, digests={name: one for name, one in sums.digests.items() if there[name] is not None})
    )
