"""A home saved into one file or folder while the platform may be running.

Tables are copied under the lake's lock, at versions that are committed; databases by their own online copy;
models while nobody registers one. What every file should be stands in a manifest.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from twin.app.databases import copy_database, database_files, dump, servers
from twin.core.settings import Settings
from twin.core.tables import TABLES

MANIFEST = "manifest.json"
LAKE, SERVERS = "lake", "postgresql"
SUFFIX = ".tar.zst"
FORMAT = 1
# made again by whoever needs it, or of this machine only
_LEFT_OUT = ("java", "logs", "spark-warehouse", "staging", "platform.json")
SECRETS = ("tokens.json", "airflow/passwords.json", "airflow/jwt_secret", "airflow/airflow.cfg")
_PASSING = (".lock", ".part", ".tmp", ".db-wal", ".db-shm", ".db-journal", ".db.new")


class CannotBackUp(Exception):
    """Where to write is taken, or what to save is not sound."""


@dataclass(frozen=True)
class Saved:
    place: Path
    files: int
    bytes: int
    # what lies outside the home and has to be saved there
    elsewhere: tuple[str, ...]


class _Place(Protocol):
    def add(self, name: str, content: Path) -> None: ...


@dataclass
class _Manifest:
    files: dict[str, dict[str, Any]] = field(default_factory=dict)

    def note(self, name: str, content: Path) -> None:
        with content.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self.files[name] = {"sha256": digest, "bytes": content.stat().st_size}


def back_up(
    settings: Settings,
    to: Path,
    with_secrets: bool = False,
    doing: Callable[[str], None] = lambda _: None,
) -> Saved:
    """Raises `Damaged` where a table is: a copy of it would be taken for a sound one."""
    from filelock import FileLock

    from features.lake import Lake

    if not settings.home.is_dir():
        raise CannotBackUp(f"there is no home at {settings.home}")
    if to.exists():
        raise CannotBackUp(f"{to} exists already")
    if settings.home in to.absolute().parents:
        raise CannotBackUp(f"{to} lies in the home that is to be saved")
    manifest = _Manifest()
    registering = FileLock(settings.folder("mlflow") / "registering.lock")
    with (
        _place(to) as place,
        tempfile.TemporaryDirectory() as scratch,
        Lake(settings).exclusive(),
        registering,
    ):

        def save(name: str, content: Path) -> None:
            manifest.note(name, content)
            place.add(name, content)

        doing("databases")
        _save_databases(settings, Path(scratch), save)
        doing("files of the home")
        _save_home(settings, with_secrets, save)
        doing("tables")
        _save_lake(Lake(settings), Path(scratch), save)
        told = {
            "format": FORMAT,
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "release": version("brokertwin"),
            "home": str(settings.home),
            "with_secrets": with_secrets,
            "files": manifest.files,
        }
        listing = Path(scratch) / MANIFEST
        listing.write_text(json.dumps(told, indent=1))
        place.add(MANIFEST, listing)
    size = sum(one["bytes"] for one in manifest.files.values())
    return Saved(to, len(manifest.files), size, _elsewhere(settings))


def _save_databases(settings: Settings, scratch: Path, save: Callable[[str, Path], None]) -> None:
    """First: a model that is registered meanwhile has files that nobody names, not the other way round."""
    for file in database_files(settings):
        copy = scratch / file.name
        copy_database(file, copy)
        save(str(file.relative_to(settings.home)), copy)
    for name, uri in servers(settings).items():
        copy = scratch / f"{name}.dump"
        dump(uri, copy)
        save(f"{SERVERS}/{copy.name}", copy)


def _save_home(settings: Settings, with_secrets: bool, save: Callable[[str, Path], None]) -> None:
    databases = {str(file.relative_to(settings.home)) for file in database_files(settings)}
    left_out = {*databases, *(() if with_secrets else SECRETS)}
    for path in sorted(settings.home.rglob("*")):
        name = str(path.relative_to(settings.home))
        inside = name.split("/")[0]
        if path.is_symlink() or not path.is_file() or inside in (*_LEFT_OUT, LAKE) or name in left_out:
            continue
        if not name.endswith(_PASSING):
            save(name, path)


def _save_lake(lake: Any, scratch: Path, save: Callable[[str, Path], None]) -> None:
    """Wherever it is; without what writes that were killed left behind."""
    from features.damage import Damaged
    from features.lake import NoSuchTable
    from features.repairing import damages
    from features.upkeep import leftovers

    for table in TABLES.values():
        if table.layer == "file":
            continue
        try:
            found = damages(lake, table)
        except NoSuchTable:
            continue
        if found:
            raise Damaged(table.name, found[0])
        files, left = lake.files(table), leftovers(lake, table)
        for name in files.names(recursive=True):
            if name.split("/")[0] not in left:
                copy = scratch / "file"
                with files.system.open_input_file(files.path(name)) as source, copy.open("wb") as target:
                    shutil.copyfileobj(source, target)
                save(f"{LAKE}/{table.layer}/{table.name}/{name}", copy)


def _elsewhere(settings: Settings) -> tuple[str, ...]:
    """Artifacts of a store that several machines see; a tracking server's database."""
    here = settings.home.as_uri()
    found = []
    if not settings.artifacts_uri.startswith(here):
        found.append(f"MLflow's artifacts in {settings.artifacts_uri}")
    if settings.tracking_uri.startswith("http"):
        found.append(f"the database of the tracking server {settings.tracking_uri}")
    return tuple(found)


@contextmanager
def _place(to: Path) -> Iterator[_Place]:
    """It appears whole or not at all, and for its owner alone."""
    to.parent.mkdir(parents=True, exist_ok=True)
    draft = to.with_name(f".{to.name}.part")
    try:
        if to.name.endswith(SUFFIX):
            with _archive(draft) as place:
                yield place
        else:
            draft.mkdir(mode=0o700)
            yield _Folder(draft)
        draft.replace(to)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        draft.unlink(missing_ok=True)
        raise


@dataclass(frozen=True)
class _Folder:
    root: Path

    def add(self, name: str, content: Path) -> None:
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(content, place)


@dataclass(frozen=True)
class _Archive:
    tar: tarfile.TarFile

    def add(self, name: str, content: Path) -> None:
        with content.open("rb") as file:
            told = tarfile.TarInfo(name)
            told.size, told.mtime, told.mode = content.stat().st_size, int(content.stat().st_mtime), 0o600
            self.tar.addfile(told, file)


@contextmanager
def _archive(draft: Path) -> Iterator[_Archive]:
    import zstandard

    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    packed: Any
    with (
        os.fdopen(descriptor, "wb") as file,
        zstandard.ZstdCompressor(level=3).stream_writer(file, closefd=False) as packed,
        tarfile.open(fileobj=packed, mode="w|") as tar,
    ):
        yield _Archive(tar)
