"""The table that database nodes work on: SQLite in a file, or PostgreSQL.

Whoever runs a flow prepares the table; each instance of the flow has a connection of its own to it. What is
written is on disk when a unit of work is committed.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from twin.harness.brokers.interface import BrokerProblem

# few enough to stay in any database's memory: a call is to be measured, not a disk
ROWS = 1000
# an instance waits so long for others that write
_WAITING_S = 30

DatabaseKind = Literal["sqlite", "postgresql"]


class DatabaseProblem(BrokerProblem):
    """Told like a broker's: to an experiment it is the same."""


@dataclass(frozen=True)
class DatabasePlace:
    kind: DatabaseKind
    # a file, or for PostgreSQL a connection string
    where: str
    table: str


class Rows:
    """One connection. The first write opens a unit of work, `commit` ends it."""

    def __init__(self, place: DatabasePlace) -> None:
        self._table = place.table
        self._is_sqlite = place.kind == "sqlite"
        self._connection: Any = _sqlite(place.where) if self._is_sqlite else _postgresql(place.where)
        self._is_open = False

    def insert(self, key: int, content: bytes) -> None:
        self._write("INSERT INTO {table} VALUES ({mark}, {mark}, 0)", key + ROWS, content)

    def delete(self, key: int) -> None:
        self._write("DELETE FROM {table} WHERE id = {mark}", key + ROWS)

    def update(self, key: int, content: bytes) -> None:
        self._write(
            "UPDATE {table} SET content = {mark}, changes = changes + 1 WHERE id = {mark}",
            content,
            key % ROWS,
        )

    def read(self, key: int) -> bytes:
        found = self._execute("SELECT content FROM {table} WHERE id = {mark}", key % ROWS).fetchone()
        if found is None:
            raise DatabaseProblem(f"row {key % ROWS} of {self._table} is gone")
        return bytes(found[0])

    def count(self) -> int:
        return int(self._execute("SELECT count(*) FROM {table}").fetchone()[0])

    def changes(self) -> int:
        return int(self._execute("SELECT sum(changes) FROM {table}").fetchone()[0])

    def commit(self) -> None:
        if self._is_open:
            self._execute("COMMIT")
            self._is_open = False

    def close(self) -> None:
        self._connection.close()

    def create(self) -> None:
        blob = "BLOB" if self._is_sqlite else "BYTEA"
        self._write(f"CREATE TABLE {{table}} (id BIGINT PRIMARY KEY, content {blob}, changes BIGINT)")
        for key in range(ROWS):
            self._write("INSERT INTO {table} VALUES ({mark}, {mark}, 0)", key, b"content")
        self.commit()

    def drop(self) -> None:
        # what could not be finished would stand in the way
        self._connection.rollback()
        self._execute("DROP TABLE IF EXISTS {table}")

    def _write(self, statement: str, *values: int | bytes) -> None:
        if not self._is_open:
            # SQLite: two that read first and write then would refuse each other
            self._execute("BEGIN IMMEDIATE" if self._is_sqlite else "BEGIN")
            self._is_open = True
        self._execute(statement, *values)

    def _execute(self, statement: str, *values: int | bytes) -> Any:
        text = statement.format(table=self._table, mark="?" if self._is_sqlite else "%s")
        try:
            return self._connection.execute(text, values)
        except Exception as error:
            raise DatabaseProblem(f"the database refuses {text.split()[0]}: {error}") from error


@contextmanager
def prepared_database(kind: DatabaseKind, where: str) -> Iterator[DatabasePlace]:
    """A table of a name that nobody else has, gone afterwards. `where` is a folder for SQLite's file, or a
    connection string."""
    table = f"twin_{uuid.uuid4().hex[:12]}"
    place = DatabasePlace(kind, str(Path(where) / f"{table}.sqlite") if kind == "sqlite" else where, table)
    rows = Rows(place)
    try:
        rows.create()
        yield place
    finally:
        rows.drop()
        rows.close()
        if kind == "sqlite":
            Path(place.where).unlink(missing_ok=True)


def _sqlite(where: str) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(where, timeout=_WAITING_S, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        raise DatabaseProblem(f"SQLite cannot open {where}: {error}") from error
    return connection


def _postgresql(where: str) -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise DatabaseProblem(
            "PostgreSQL needs psycopg: install brokertwin with its extra `cluster`"
        ) from error
    try:
        connection = psycopg.connect(where, autocommit=True, connect_timeout=_WAITING_S)
        connection.execute(f"SET lock_timeout = '{_WAITING_S}s'")
    except psycopg.Error as error:
        said = str(error).strip().splitlines()
        raise DatabaseProblem(f"PostgreSQL cannot be reached: {said[-1] if said else error}") from error
    return connection
