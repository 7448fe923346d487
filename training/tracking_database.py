"""MLflow's own database in a file: made whole or not at all, and brought to the installed release.

MLflow makes it by dozens of steps; killed in between it leaves a file that it never opens again. So it is
made, and changed, beside its place and then moved there.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

_FILE = "sqlite:///"


class BrokenDatabase(Exception):
    """MLflow's database cannot be opened, and what to do about it."""


def file_of(tracking_uri: str) -> Path | None:
    return Path(tracking_uri.removeprefix(_FILE)) if tracking_uri.startswith(_FILE) else None


def ensure_made(tracking_uri: str) -> None:
    """Where there is none yet; several may come at once."""
    file = file_of(tracking_uri)
    if file is None or file.exists():
        return
    from filelock import FileLock

    with FileLock(file.with_suffix(".lock")):
        if not file.exists():
            draft = _draft(file)
            _open(draft)
            draft.replace(file)


def mend(tracking_uri: str) -> None:
    """After MLflow could not open it: an older release's is brought up to date, one that was half made begins
    anew. Nothing that somebody registered is lost, whatever happens on the way."""
    file = file_of(tracking_uri)
    if file is None:
        _upgrade(tracking_uri)
        return
    from filelock import FileLock

    with FileLock(file.with_suffix(".lock")):
        draft = _draft(file)
        try:
            with closing(sqlite3.connect(file)) as before, closing(sqlite3.connect(draft)) as copy:
                before.backup(copy)
            _upgrade(f"{_FILE}{draft}")
            _open(draft)
        except Exception as error:
            if _is_used(file):
                raise BrokenDatabase(
                    f"MLflow's database {file} cannot be opened ({str(error).splitlines()[0]}): restore a "
                    "backup with `twin restore`, or move it away and train anew"
                ) from error
            draft = _draft(file)
            _open(draft)
        # into the same file, in one transaction: who has it open sees the new content
        with closing(sqlite3.connect(draft)) as after, closing(sqlite3.connect(file)) as before:
            after.backup(before)
        draft.unlink()


def _draft(file: Path) -> Path:
    """One that was left by a try that was killed is worth nothing."""
    draft = file.with_name(f"{file.name}.new")
    for left in file.parent.glob(f"{draft.name}*"):
        left.unlink()
    return draft


def _open(file: Path) -> None:
    """MLflow makes all its tables when it opens a file that has none."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store = SqlAlchemyStore(f"{_FILE}{file}", file.parent.as_uri())
    store.engine.dispose()


def _upgrade(uri: str) -> None:
    from mlflow.store.db.utils import _upgrade_db, create_sqlalchemy_engine_with_retry

    engine = create_sqlalchemy_engine_with_retry(uri)
    _upgrade_db(engine)
    engine.dispose()


def _is_used(file: Path) -> bool:
    """Somebody registered or logged something."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(file)) as database:
        for table in ("runs", "model_versions"):
            with suppress(sqlite3.OperationalError):
                if database.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone():
                    return True
        return False
    # not a database at all: what it was nobody can tell
    return True
