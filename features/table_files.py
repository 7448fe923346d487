"""The files of one table: what there is, what there should be.

Delta notes the size of a data file and nothing else, takes an empty log entry for one without changes, and
cannot miss a last entry that is gone. So after every commit the digests of all log entries and data files are
noted beside the log. A table of before that has no such note is looked at without.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from features.damage import Damage

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

LOG = "_delta_log"
HINT = f"{LOG}/_last_checkpoint"
_NOTE = "_sums.json"
_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*parquet")
# a larger data file is not read twice: its size is looked at, and its pages carry checksums of their own
_DIGESTED_BYTES = 64 * 1024 * 1024
_BLOCK = 1024 * 1024
_MOMENT_S = 0.05


@dataclass(frozen=True)
class Sums:
    """What was there after the last commit that was noted."""

    version: int = -1
    digests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Log:
    """Names of the log's files by version."""

    entries: Mapping[int, str]
    checkpoints: Mapping[int, list[str]]
    has_hint: bool

    def names(self) -> list[str]:
        return [*self.entries.values(), *(name for parts in self.checkpoints.values() for name in parts)]

    @property
    def newest(self) -> int:
        return max((*self.entries, *self.checkpoints), default=-1)

    @property
    def versions(self) -> list[int]:
        """Those that can be asked for: from the first checkpoint, or from the beginning."""
        first = 0 if 0 in self.entries else min(self.checkpoints, default=self.newest + 1)
        return list(range(first, self.newest + 1))


class TableFiles:
    def __init__(self, uri: str) -> None:
        from pyarrow.fs import FileSystem

        self.system: FileSystem
        self.system, self.root = FileSystem.from_uri(uri)

    @property
    def tree(self) -> FileSystem:
        """This folder as Arrow's own file system. The one that `deltalake` makes is called back in Python by
        Arrow's threads, also by those that still tidy up after a read when the program has ended: it aborts
        (https://github.com/apache/arrow/issues/34314)."""
        from pyarrow.fs import SubTreeFileSystem

        return SubTreeFileSystem(self.root, self.system)

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def names(self, folder: str = "", recursive: bool = False) -> list[str]:
        """Files below a folder."""
        from pyarrow.fs import FileSelector, FileType

        place = FileSelector(self.path(folder).rstrip("/"), allow_not_found=True, recursive=recursive)
        found = self.system.get_file_info(place)
        return [one.path.removeprefix(f"{self.root}/") for one in found if one.type == FileType.File]

    def sizes(self, names: Sequence[str]) -> dict[str, int | None]:
        """None where there is no such file."""
        found = self.system.get_file_info([self.path(name) for name in names])
        return {name: info.size if info.is_file else None for name, info in zip(names, found, strict=True)}

    def read(self, name: str) -> bytes:
        with self.system.open_input_file(self.path(name)) as file:
            content: bytes = file.read()
        return content

    def digest(self, name: str) -> str:
        found = hashlib.sha256()
        with self.system.open_input_file(self.path(name)) as file:
            while block := file.read(_BLOCK):
                found.update(block)
        return found.hexdigest()

    def log(self) -> Log:
        entries: dict[int, str] = {}
        checkpoints: dict[int, list[str]] = {}
        names = self.names(LOG)
        for name in names:
            last = name.rpartition("/")[2]
            if told := _ENTRY.fullmatch(last):
                entries[int(told[1])] = name
            elif told := _CHECKPOINT.fullmatch(last):
                checkpoints.setdefault(int(told[1]), []).append(name)
        return Log(entries, checkpoints, HINT in names)

    def sums(self) -> Sums:
        """Nothing where the note is not there, half written or damaged itself: then it proves nothing."""
        try:
            told = json.loads(self.read(_NOTE))
            sums = Sums(told["version"], told["digests"])
            return sums if told["of_this"] == _digest_of(sums) else Sums()
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return Sums()

    def seal(self, data: Iterable[str]) -> None:
        """After a commit: its log entries and data files as they are now."""
        log, before = self.log(), self.sums()
        files = [
            *log.entries.values(),
            *(name for parts in log.checkpoints.values() for name in parts),
            *data,
        ]
        missing = [name for name in files if name not in before.digests]
        digests = {**before.digests, **{name: self.digest(name) for name in missing}}
        self.note(Sums(max(log.newest, before.version), digests))

    def note(self, sums: Sums) -> None:
        told = {"version": sums.version, "digests": dict(sums.digests), "of_this": _digest_of(sums)}
        draft = self.path(f"{_NOTE}.{uuid.uuid4().hex}")
        with self.system.open_output_stream(draft) as file:
            file.write(json.dumps(told, indent=1).encode())
        self.system.move(draft, self.path(_NOTE))

    def has_note(self) -> bool:
        return bool(self.sizes([_NOTE])[_NOTE])

    def move_aside(self, names: Iterable[str], to: str) -> None:
        """Below a folder beside the tables, from which nobody reads."""
        for name in names:
            place = f"{to}/{name}"
            self.system.create_dir(place.rpartition("/")[0], recursive=True)
            self.system.move(self.path(name), place)


def looked_at(files: TableFiles) -> tuple[Log, Sums, Damage | None]:
    """The log as it is, and what is wrong with it. Looked at twice before anything is said: a folder that is
    listed while somebody commits or tidies may show the later file and not the earlier one."""
    for _ in range(2):
        # in this order: a commit that comes in between must not look like one that is gone
        sums, log = files.sums(), files.log()
        try:
            damage = log_damage(files, log, sums)
        except FileNotFoundError as error:
            damage = Damage(LOG, f"has lost a file: {error}")
        if damage is None:
            break
        time.sleep(_MOMENT_S)
    return log, sums, damage


def log_damage(files: TableFiles, log: Log, sums: Sums, version: int | None = None) -> Damage | None:
    """What is wrong with the part of the log that tells a version, the newest if none is named."""
    asked = max(log.newest, sums.version) if version is None else version
    if version is None and log.has_hint and (damage := hint_damage(files, log)):
        return damage
    start = max((one for one in log.checkpoints if one <= asked), default=-1)
    for name in log.checkpoints.get(start, []):
        if damage := content_damage(files, name, sums):
            return damage
    for at in range(start + 1, asked + 1):
        if at not in log.entries:
            return Damage(f"{LOG}/{at:020}.json", "is missing")
        if damage := entry_damage(files, log.entries[at], sums):
            return damage
    return None


def data_damages(
    files: TableFiles, sums: Sums, sizes: Mapping[str, int], whole: bool = False
) -> list[Damage]:
    """What is wrong with data files of which the log tells sizes; `whole` reads large ones too."""
    found = []
    for name, size in files.sizes(list(sizes)).items():
        if size is None:
            found.append(Damage(name, "is missing"))
        elif size != sizes[name]:
            found.append(Damage(name, f"has {size} bytes instead of {sizes[name]}"))
        elif (whole or size <= _DIGESTED_BYTES) and (damage := content_damage(files, name, sums, whole)):
            found.append(damage)
    return found


def hint_damage(files: TableFiles, log: Log) -> Damage | None:
    try:
        named = json.loads(files.read(HINT))["version"]
    except (ValueError, KeyError, TypeError):
        return Damage(HINT, "is not the JSON that it should be")
    if named not in log.checkpoints:
        return Damage(f"{LOG}/{named:020}.checkpoint.parquet", "is missing")
    return None


def entry_damage(files: TableFiles, name: str, sums: Sums) -> Damage | None:
    content = files.read(name)
    if not content.strip():
        return Damage(name, "is empty")
    try:
        whole = all(isinstance(json.loads(line), dict) for line in content.splitlines() if line.strip())
    except ValueError:
        whole = False
    if not whole:
        return Damage(name, "is not JSON")
    if sums.digests.get(name, digest := hashlib.sha256(content).hexdigest()) != digest:
        return Damage(name, "is not what was written")
    return None


def content_damage(files: TableFiles, name: str, sums: Sums, thorough: bool = True) -> Damage | None:
    if name not in sums.digests:
        return _page_damage(files, name) if thorough else None
    return None if files.digest(name) == sums.digests[name] else Damage(name, "is not what was written")


def _page_damage(files: TableFiles, name: str) -> Damage | None:
    """Of a file whose digest is not known: by the checksums that its pages carry, and whether it can be
    read."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        parquet.read_table(files.path(name), filesystem=files.system, page_checksum_verification=True,
                           partitioning=None)  # fmt: skip
    except (pa.ArrowException, OSError) as error:
        return Damage(name, f"cannot be read: {str(error).splitlines()[0]}")
    return None


def _digest_of(sums: Sums) -> str:
    told: Any = [sums.version, sorted(sums.digests.items())]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
