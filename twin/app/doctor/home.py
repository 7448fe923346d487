"""The home: who may read it, whether its tables are sound, what killed work left in it."""

from __future__ import annotations

import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from twin.app.backup import SECRETS
from twin.app.doctor.checkup import Check, Finding
from twin.app.repairing import KEPT
from twin.app.staging import abandoned, remove_abandoned
from twin.core.settings import Settings
from twin.core.tables import Table

if TYPE_CHECKING:
    from features.lake import Lake

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_DAY_S = 86_400.0


def home(settings: Settings) -> Iterator[Finding]:
    if not settings.home.is_dir():
        yield Finding("home", "note", f"{settings.home} is not there yet", "`make run` fills one")
        return
    try:
        with tempfile.TemporaryFile(dir=settings.home):
            pass
    except OSError as error:
        yield Finding(
            "home", "wrong", f"{settings.home} cannot be written: {error}", "set its owner and mode"
        )
        return
    yield _mode("home", settings.home, 0o700)


def secrets(settings: Settings) -> Iterator[Finding]:
    places = {settings.tokens_file, *(settings.home / name for name in SECRETS)}
    for place in sorted(one for one in places if one.is_file()):
        yield _mode("secrets", place, 0o600)


def tables(settings: Settings) -> Iterator[Finding]:
    """Every file of every newest version, read whole."""
    from features.damage import Unreadable
    from features.lake import Lake, NoSuchTable
    from features.migrating import is_current
    from features.repairing import damages

    lake = Lake(settings)
    sound: list[Table] = []
    for table in KEPT.values():
        try:
            found = damages(lake, table)
            if not found:
                is_current(table, lake.delta(table))
                sound.append(table)
        except NoSuchTable:
            continue
        except Unreadable as error:
            yield Finding("tables", "wrong", str(error))
            continue
        for damage in found:
            yield Finding("tables", "wrong", f"{table.name}: {damage}", f"`twin repair {table.name}`")
    yield Finding("tables", "well" if sound else "note", f"{len(sound)} are sound")
    unnoted = [table for table in sound if not lake.files(table).has_note()]
    if unnoted:
        yield Finding(
            "tables", "note", f"{len(unnoted)} were written without digests: a flipped bit may go unseen",
            "`twin doctor --fix` notes them", partial(_seal, lake, unnoted),
        )  # fmt: skip


def leftovers(settings: Settings) -> Iterator[Finding]:
    """Of work that was killed. Nobody is to be writing meanwhile, or that would look like one."""
    from filelock import Timeout

    from features.lake import Lake

    found: list[Finding] = []
    if settings.home.is_dir():
        try:
            with Lake(settings).exclusive().acquire(timeout=0):
                found += _unfinished_writes(settings)
        except Timeout:
            found.append(Finding("leftovers", "note", "somebody is writing tables: look again later"))
    if folders := abandoned(settings):
        found.append(_left(f"{len(folders)} folders in staging", lambda: remove_abandoned(settings)))
    old = [
        file
        for pattern in ("staging/*.json", "answers/.*.part", "quality/*.part", "sync/*.tmp")
        for file in settings.home.glob(pattern)
        if time.time() - file.stat().st_mtime > _DAY_S
    ]
    if old:
        found.append(_left(f"{len(old)} half-written files, {old[0]} first", lambda: _unlink(old)))
    yield from found or [Finding("leftovers", "well", "none")]


def _unfinished_writes(settings: Settings) -> Iterator[Finding]:
    from features.damage import Unreadable
    from features.lake import Lake
    from features.upkeep import leftovers, remove_leftovers

    lake = Lake(settings)
    for table in KEPT.values():
        try:
            folders = leftovers(lake, table)
        except Unreadable:  # told already
            continue
        if folders:
            what = f"table {table.name}: {len(folders)} folders that no version names"
            yield _left(what, partial(remove_leftovers, lake, table))


def _left(what: str, mend: Callable[[], object]) -> Finding:
    return Finding("leftovers", "wrong", what, "`twin doctor --fix` removes them", mend)


def _seal(lake: Lake, tables: list[Table]) -> None:
    for table in tables:
        lake.seal(table)


def _unlink(files: list[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _mode(check: str, place: Path, wanted: int) -> Finding:
    mode = stat.S_IMODE(place.stat().st_mode)
    if mode & _OTHERS:
        return Finding(
            check, "wrong", f"others may use {place} (mode {mode:o})", f"`chmod {wanted:o} {place}`",
            lambda: place.chmod(wanted),
        )  # fmt: skip
    return Finding(check, "well", f"{place} (mode {mode:o})")


CHECKS: tuple[Check, ...] = (home, secrets, tables, leftovers)
