"""A damaged table: what is wrong with it, which of its versions is still sound, and going back to that one.

What is damaged is put beside the table, not deleted: somebody may want to look at it.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from features.damage import Damage, Damaged
from features.lake import Lake, NoSuchTable, NoSuchVersion, data_files, noted
from features.table_files import (
    HINT,
    LOG,
    Log,
    Sums,
    TableFiles,
    content_damage,
    data_damages,
    entry_damage,
    hint_damage,
)
from features.upkeep import commit_times
from twin.core.tables import Table


@dataclass(frozen=True)
class Repair:
    """What a repair finds and would do."""

    table: str
    damages: tuple[Damage, ...]
    # None where no version is sound: then the table begins anew
    version: int | None
    # versions that are given up and when they were committed, where that can be told
    lost: dict[int, datetime | None]
    aside: tuple[str, ...]
    # of the log that is left
    newest: int


def damages(lake: Lake, table: Table) -> list[Damage]:
    """Everything that is wrong with the newest version, read whole; raises `NoSuchTable`."""
    files = lake.files(table)
    try:
        sizes = data_files(lake.delta(table))
    except Damaged as error:
        return [error.damage]
    return data_damages(files, files.sums(), sizes, whole=True)


def repair_of(lake: Lake, table: Table, to: int | None = None, anew: bool = False) -> Repair:
    """`to`: an older version than the newest sound one. `anew`: none of them."""
    files = lake.files(table)
    sums, log = files.sums(), files.log()
    newest = max(log.newest, sums.version)
    if newest < 0:
        raise NoSuchTable(f"table {table.name} does not exist yet")
    found = damages(lake, table)
    aside = _unsound(files, log, sums)
    left = _without(log, aside)
    sizes = {} if anew else _sizes_by_version(files, left)
    broken = {version: data_damages(files, sums, of, whole=True) for version, of in sizes.items()}
    sound = [version for version, wrong in broken.items() if not wrong]
    if to is not None and to not in sound:
        raise NoSuchVersion(f"version {to} of table {table.name} is not there, or is damaged itself")
    version = to if to is not None else max(sound, default=None)
    if version is None:
        aside = files.names(recursive=True)
    else:
        there = files.sizes(sorted({one.file for wrong in broken.values() for one in wrong}))
        aside += [name for name, size in there.items() if size is not None]
    times = commit_times(files, log)
    lost = {at: times.get(at) for at in range(0 if version is None else version + 1, newest + 1)}
    return Repair(table.name, tuple(found), version, lost, tuple(aside), left.newest)


def repair(lake: Lake, table: Table, plan: Repair) -> str:
    """Returns where the damaged files are."""
    from deltalake import CommitProperties

    files = lake.files(table)
    sums = files.sums()
    place = f"{files.root}.damaged/{datetime.now(UTC):%Y%m%dT%H%M%S}"
    files.move_aside(plan.aside, place)
    if plan.version is None:
        return place
    kept = {name: one for name, one in sums.digests.items() if name not in plan.aside}
    gone = {name for name, size in files.sizes(list(kept)).items() if size is None}
    log_left = {name: one for name, one in kept.items() if not (name in gone and name.startswith(LOG))}
    files.note(replace(sums, version=plan.newest, digests=log_left))
    if plan.version < plan.newest:
        # with what was noted of that content: it is that content again
        commit = CommitProperties(custom_metadata=noted(lake.delta(table, plan.version)))
        lake.delta(table).restore(plan.version, commit_properties=commit)
    lake.seal(table)
    return place


def _unsound(files: TableFiles, log: Log, sums: Sums) -> list[str]:
    """Files of the log that cannot be read, and those that build on them."""
    aside = [
        name
        for names in log.checkpoints.values()
        for name in names
        if content_damage(files, name, sums) is not None
    ]
    checkpoints = [at for at, names in log.checkpoints.items() if not {*names} & {*aside}]
    at = max(checkpoints, default=-1) + 1
    while at in log.entries and entry_damage(files, log.entries[at], sums) is None:
        at += 1
    aside += [name for version, name in log.entries.items() if version >= at]
    if log.has_hint and (aside or hint_damage(files, log)):
        aside.append(HINT)
    return list(dict.fromkeys(aside))


def _without(log: Log, aside: list[str]) -> Log:
    entries = {at: name for at, name in log.entries.items() if name not in aside}
    checkpoints = {at: names for at, names in log.checkpoints.items() if not {*names} & {*aside}}
    return Log(entries, checkpoints, log.has_hint and HINT not in aside)


def _sizes_by_version(files: TableFiles, log: Log) -> dict[int, dict[str, int]]:
    """The data files of every version that a log tells: read from a copy, as if the rest were gone."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / LOG).mkdir()
        for name in log.names():
            (Path(folder) / name).write_bytes(files.read(name))
        for version in log.versions:
            try:
                found[version] = data_files(DeltaTable(folder, version=version))
            except DeltaError:  # an older part of the log that nothing newer needs
                continue
    return found
