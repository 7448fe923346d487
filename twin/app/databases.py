"""The databases of a home: copies of ones in use, and what to change in them when the home moves."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlsplit

from training.tracking_database import file_of
from twin.core.settings import Settings

AIRFLOW, MLFLOW = "airflow", "mlflow"
_PATIENCE_S = 600


class DatabaseFailed(Exception):
    """A database could not be saved or restored."""


def database_files(settings: Settings) -> list[Path]:
    """Those that are files of the home."""
    tracking = file_of(settings.tracking_uri)
    found = [settings.home / "airflow" / "airflow.db", *([tracking] if tracking else [])]
    return [file for file in found if file.is_file() and settings.home in file.parents]


def servers(settings: Settings) -> dict[str, str]:
    """Those that a PostgreSQL server keeps, by what they are for."""
    airflow = os.environ.get("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "")
    known = {AIRFLOW: airflow, MLFLOW: settings.tracking_uri}
    return {name: uri for name, uri in known.items() if uri.startswith("postgresql")}


def copy_database(file: Path, copy: Path) -> None:
    """As it is at one moment, while others go on writing."""
    with closing(sqlite3.connect(file)) as before, closing(sqlite3.connect(copy)) as after:
        before.backup(after)
        # one file, without a log beside it
        after.execute("PRAGMA journal_mode=DELETE")


def dump(uri: str, file: Path) -> None:
    _run("pg_dump", uri, "--format=custom", "--no-owner", f"--file={file}")


def load(uri: str, file: Path) -> None:
    """What is in the database is replaced."""
    _run("pg_restore", uri, "--clean", "--if-exists", "--no-owner", "--single-transaction", str(file))


def rewrite_paths(database: Path, before: Path, now: Path) -> None:
    """MLflow notes the whole path of every artifact."""
    changes = {str(before): str(now), quote(str(before)): quote(str(now))}
    with closing(sqlite3.connect(database)) as connection, connection:
        columns = connection.execute(
            "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'"
        ).fetchall()
        for old, new in changes.items():
            for table, column in columns:
                connection.execute(
                    f'UPDATE "{table}" SET "{column}" = replace("{column}", ?, ?) WHERE instr("{column}", ?)',
                    (old, new, old),
                )


def _run(program: str, uri: str, *arguments: str) -> None:
    if shutil.which(program) is None:
        raise DatabaseFailed(f"{program} is not on the PATH: install PostgreSQL's client programs")
    parts = urlsplit(uri)
    # a password on a command line can be seen by everybody
    environment = dict(os.environ) | ({"PGPASSWORD": parts.password} if parts.password else {})
    where = ["-h", parts.hostname or "127.0.0.1", "-p", str(parts.port or 5432), "-d", parts.path.lstrip("/")]
    who = ["-U", parts.username] if parts.username else []
    done = subprocess.run(  # noqa: S603
        [program, *where, *who, "--no-password", *arguments],
        env=environment, capture_output=True, text=True, check=False, timeout=_PATIENCE_S,
    )  # fmt: skip
    if done.returncode:
        *_, reason = ["it said nothing", *done.stderr.strip().splitlines()]
        raise DatabaseFailed(f"{program} failed: {reason}")
