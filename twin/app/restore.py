"""A backup back into a home, or into another one: checked before anything takes its place."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from twin.app.backup import FORMAT, LAKE, MANIFEST, SERVERS, SUFFIX
from twin.app.databases import load, rewrite_paths, servers
from twin.core.outside import BadInput, json_of, read_text
from twin.core.settings import Settings

_BLOCK = 1024 * 1024
# some hundred bytes for each file of a lake
_MOST_MANIFEST = 256 * 2**20


class BadBackup(Exception):
    """Not a backup, or not what was saved."""


class HomeIsTaken(Exception):
    """There is something already where the backup should go."""


@dataclass(frozen=True)
class Restored:
    home: Path
    files: int
    made_at: str
    # where what was there before is now
    before: Path | None


def restore(settings: Settings, backup: Path, into: Path | None = None, replaces: bool = False) -> Restored:
    """Into the home of the settings, or another one."""
    home = (into or settings.home).absolute()
    taken = home.exists() and any(home.iterdir())
    if taken and not replaces:
        raise HomeIsTaken(f"{home} is not empty: `--replace` puts what is there aside first")
    with _unpacked(backup, home) as folder:
        manifest = _checked(folder)
        (folder / MANIFEST).unlink()
        for database in folder.glob("mlflow/*.db"):
            rewrite_paths(database, Path(manifest["home"]), home)
        _restore_servers(settings, folder)
        if into is None:
            _restore_lake(settings, folder)
        before = _aside(home) if taken else None
        if home.exists():
            home.rmdir()
        folder.chmod(0o700)
        folder.replace(home)
    return Restored(home, len(manifest["files"]), manifest["made_at"], before)


@contextmanager
def _unpacked(backup: Path, home: Path) -> Iterator[Path]:
    """Beside the home, so that taking its place is one step."""
    home.parent.mkdir(parents=True, exist_ok=True)
    folder = home.with_name(f".{home.name}-{uuid.uuid4().hex[:8]}")
    folder.mkdir(mode=0o700)
    try:
        if backup.is_dir():
            for path in sorted(backup.rglob("*")):
                if path.is_symlink():
                    raise BadBackup(f"{backup} has a link in it: {path.relative_to(backup)}")
                if path.is_file():
                    place = _inside(folder, str(path.relative_to(backup)))
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, place)
        elif backup.is_file() and backup.name.endswith(SUFFIX):
            _extract(backup, folder)
        else:
            raise BadBackup(f"{backup} is neither a folder nor a {SUFFIX} file")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _extract(backup: Path, folder: Path) -> None:
    import zstandard

    try:
        with (
            backup.open("rb") as file,
            zstandard.ZstdDecompressor().stream_reader(file, closefd=False) as content,
            tarfile.open(fileobj=content, mode="r|") as tar,
        ):
            for member in tar:
                _extract_member(tar, member, folder)
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise BadBackup(f"{backup} cannot be unpacked: {error}") from error


def _extract_member(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    if not member.isreg():
        raise BadBackup(f"{member.name!r} is not a plain file: no backup of ours has such")
    if member.size > shutil.disk_usage(folder).free:
        raise BadBackup(f"{member.name!r} has {member.size} bytes, more than there is room for")
    place = _inside(folder, member.name)
    place.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(member)
    assert source is not None
    with place.open("wb") as target:
        shutil.copyfileobj(source, target, _BLOCK)


def _inside(folder: Path, name: str) -> Path:
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts:
        raise BadBackup(f"{name!r} leads out of the backup")
    return folder / name


def _checked(folder: Path) -> dict[str, Any]:
    """Every file is there, is what was saved, and nothing else came with it."""
    try:
        manifest: dict[str, Any] = json_of(read_text(folder / MANIFEST, _MOST_MANIFEST))
        files, made_for = manifest["files"], manifest["format"]
        digests = {name: told["sha256"] for name, told in files.items()}
    except (BadInput, KeyError, TypeError, AttributeError) as error:
        raise BadBackup("it has no manifest, or half of one") from error
    if made_for != FORMAT:
        raise BadBackup(f"it is of format {made_for}; this release reads {FORMAT}")
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {MANIFEST}
    if lost := sorted({*files} - there):
        raise BadBackup(f"{lost[0]} is missing")
    if foreign := sorted(there - {*files}):
        raise BadBackup(f"{foreign[0]} does not belong to it")
    for name, digest in digests.items():
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise BadBackup(f"{name} is not what was saved")
    return manifest


def _restore_servers(settings: Settings, folder: Path) -> None:
    for name, uri in servers(settings).items():
        saved = folder / SERVERS / f"{name}.dump"
        if saved.is_file():
            load(uri, saved)
            saved.unlink()


def _restore_lake(settings: Settings, folder: Path) -> None:
    """Where the lake is somewhere else than in the home."""
    from features.lake import Lake
    from twin.core.tables import TABLES

    if settings.lake_uri == (settings.home / LAKE).as_uri():
        return
    lake = Lake(settings)
    for table in TABLES.values():
        saved = folder / LAKE / table.layer / table.name
        if not saved.is_dir():
            continue
        files = lake.files(table)
        if files.names("_delta_log"):
            raise HomeIsTaken(f"{lake.uri(table)} is there already: move it away first")
        for path in sorted(saved.rglob("*")):
            if path.is_file():
                name = str(path.relative_to(saved))
                files.system.create_dir(files.path(name).rpartition("/")[0], recursive=True)
                with files.system.open_output_stream(files.path(name)) as target:
                    target.write(path.read_bytes())
    shutil.rmtree(folder / LAKE)


def _aside(home: Path) -> Path:
    place = home.with_name(f"{home.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%S}")
    home.replace(place)
    return place
