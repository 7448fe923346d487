"""The landing zone: a file arrives in `inbox` and leaves it for `processed`, or for `refused` with the reason
beside it.

A file stays in the inbox until everything that was asked of it is done, so work that is killed is simply done
again. What a file is, is told by what stands in it (`kind_of`); only plain files directly in the inbox are
looked at, and a name that is handed back to us may not be a path.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from twin.core.settings import Settings
from twin.sources.files import Kind, kind_of

# a file that was touched within this time may still be growing
SETTLING_S = 2.0
_UNFINISHED = (".part", ".tmp", ".crdownload", ".swp", "~")
_SIDECAR = ".yaml"
_REASON = ".reason.txt"


class NoSuchArrival(Exception):
    """A name that is not that of a file in the inbox."""


@dataclass(frozen=True)
class Arrival:
    """A file in the inbox as it was seen; a later version of it is another arrival."""

    name: str
    sha256: str


class Landing:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.inbox = settings.home / "inbox"
        self.processed = settings.home / "processed"
        self.refused = settings.home / "refused"

    def open(self) -> None:
        for folder in (self.inbox, self.processed, self.refused):
            self._settings.folder(folder.name)

    def waiting(self, kind: Kind) -> list[str]:
        """Names of files of a kind that are all there. What is of no known kind counts as harness data:
        reading it as such says what is wrong with it."""
        return [path.name for path in self._settled() if (kind_of(path) or "harness") == kind]

    def path(self, name: str) -> Path:
        path = self.inbox / name
        if Path(name).name != name or path.is_symlink() or not path.is_file():
            raise NoSuchArrival(f"{name!r} is not the name of a file in {self.inbox}")
        return path

    def arrival(self, name: str) -> Arrival:
        return Arrival(name, _digest(self.path(name)))

    def done(self, arrival: Arrival) -> None:
        self._move(arrival, self.processed)

    def refuse(self, arrival: Arrival, reason: str) -> None:
        (self.refused / f"{self._move(arrival, self.refused)}{_REASON}").write_text(f"{reason}\n", "utf-8")

    def lasting_name(self, arrival: Arrival, folder: Path | None = None) -> str:
        """Its own name, unless another file of that name is in `processed` (or `folder`) already."""
        there = (folder or self.processed) / arrival.name
        if not there.exists() or _digest(there) == arrival.sha256:
            return arrival.name
        return f"{there.stem}-{arrival.sha256[:8]}{there.suffix}"

    def refusals(self) -> dict[str, str]:
        """Refused files and why."""
        told = sorted(self.refused.glob(f"*{_REASON}"))
        return {one.name.removesuffix(_REASON): one.read_text(encoding="utf-8").strip() for one in told}

    def counts(self) -> dict[str, int]:
        return {
            "waiting": sum(1 for _ in self._files()),
            "processed": sum(1 for _ in self.processed.glob("[!.]*")),
            "refused": len(self.refusals()),
        }

    def _move(self, arrival: Arrival, folder: Path) -> str:
        """Returns the name it has there. An earlier try may have moved it; a version of it that came
        meanwhile stays in the inbox and is looked at again."""
        self.open()
        name = self.lasting_name(arrival, folder)
        with suppress(NoSuchArrival):
            path = self.path(arrival.name)
            if _digest(path) == arrival.sha256:
                sidecar = path.with_name(path.name + _SIDECAR)
                if sidecar.is_file():
                    sidecar.replace(folder / f"{name}{_SIDECAR}")
                path.replace(folder / name)
        return name

    def _files(self) -> Iterator[Path]:
        """Plain files, without those that describe another; a link could lead anywhere."""
        if not self.inbox.is_dir():
            return
        with os.scandir(self.inbox) as entries:
            names = {one.name for one in entries if one.is_file(follow_symlinks=False)}
        for name in sorted(names):
            if not name.startswith(".") and not name.endswith((*_UNFINISHED, _SIDECAR)):
                yield self.inbox / name

    def _settled(self) -> Iterator[Path]:
        for path in self._files():
            sidecar = path.with_name(path.name + _SIDECAR)
            if _is_settled(path) and (not sidecar.exists() or _is_settled(sidecar)):
                yield path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_settled(path: Path) -> bool:
    try:
        # a clock that runs ahead must not keep a file waiting
        return abs(time.time() - path.stat().st_mtime) >= SETTLING_S and not _is_being_written(path)
    except FileNotFoundError:
        return False


def _is_being_written(path: Path) -> bool:
    """Linux grants a read lease only on a file that nobody has open for writing; elsewhere, and on files of
    others, only the time of the last change tells."""
    import fcntl

    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    with path.open("rb") as file:
        # a writer that comes just now is told by a signal, which must not be one that ends us
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False
