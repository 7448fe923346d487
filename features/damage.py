"""What can be wrong with a table that is there, and how that is told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Damage:
    # below the table's folder
    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file} {self.what}"


class Unreadable(Exception):
    """A table that is there and cannot be read; the message says what to do."""


class Damaged(Unreadable):
    """A file of a table is not what was written."""

    def __init__(self, table: str, damage: Damage) -> None:
        super().__init__(
            f"table {table} is damaged: {damage}; `twin repair {table}` restores its newest sound version"
        )
        self.table, self.damage = table, damage


class SchemaChanged(Unreadable):
    """A column has another type than this release knows how to read."""
