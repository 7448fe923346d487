"""The journal: what was done, by which run, how long it took and what came of it. A line of JSON each.

It is for people and machines that look afterwards. One that cannot be written never fails the work that it
tells of, and no password gets into it.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from twin.core.run_id import run_id
from twin.core.settings import Settings

Outcome = Literal["done", "nothing", "failed"]
_LARGEST_BYTES = 5_000_000
_LONGEST_TEXT = 500
_MOST_FIGURES = 60
_PASSWORD = re.compile(r"(\w+://[^\s:/@]*):[^\s@]*@")
_SECRET = re.compile(r"token|password|secret", re.IGNORECASE)
_MASK = "***"

log = logging.getLogger(__name__)


@dataclass
class Entry:
    """Filled in while the work is done."""

    outcome: Outcome = "done"
    what: str = ""
    figures: Any = None


def journal_file(settings: Settings) -> Path:
    return settings.home / "logs" / "journal.jsonl"


@contextmanager
def noted(settings: Settings, step: str, idle: type[Exception] | tuple[()] = ()) -> Iterator[Entry]:
    """One line about the work inside; an exception of the kind `idle` says that there was nothing to do."""
    entry, began, at = Entry(), time.monotonic(), datetime.now(UTC)
    try:
        yield entry
    except BaseException as error:
        # a command that is done may end by an exception with this code
        if getattr(error, "exit_code", None) != 0:
            entry.outcome = "nothing" if isinstance(error, idle) else "failed"
            entry.what = f"{type(error).__name__}: {error}".rstrip(": ")
        raise
    finally:
        _write(
            settings,
            {
                "at": at.isoformat(timespec="milliseconds"),
                "run_id": run_id(),
                "step": step,
                "outcome": entry.outcome,
                "seconds": round(time.monotonic() - began, 3),
                "what": _plain("what", entry.what),
                "figures": dict(list(_flat("", entry.figures))[:_MOST_FIGURES]),
                "pid": os.getpid(),
            },
        )


def entries(settings: Settings) -> list[dict[str, Any]]:
    """Oldest first; a line that was cut by a kill is left out."""
    found = []
    for file in (_older(journal_file(settings)), journal_file(settings)):
        with suppress(OSError):
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                with suppress(ValueError):
                    found.append(json.loads(line))
    return [one for one in found if isinstance(one, dict) and "step" in one]


def masked(text: str) -> str:
    """Addresses without the passwords in them."""
    return _PASSWORD.sub(rf"\1:{_MASK}@", text)


def _write(settings: Settings, line: dict[str, Any]) -> None:
    file = journal_file(settings)
    try:
        settings.folder("logs")
        with suppress(FileNotFoundError):
            if file.stat().st_size > _LARGEST_BYTES:
                file.replace(_older(file))
        # one write of one line: several processes write at once
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w") as out:
            out.write(json.dumps(line, default=str) + "\n")
    except (OSError, ValueError) as error:
        log.warning("the journal could not be written: %s", error)


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Figures of nested answers under dotted names."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _flat(f"{name}.{key}".lstrip("."), one)
    elif isinstance(value, list | tuple | set):
        yield name, len(value)
    elif value is not None:
        yield name, _plain(name, value)


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    return _MASK if _SECRET.search(name) else masked(str(value))[:_LONGEST_TEXT]


def _older(file: Path) -> Path:
    return file.with_name("journal.old.jsonl")
