"""Folders for work that a kill may end: whoever comes next removes what was left.

The lock beside a folder goes with the process that holds it, however that ends.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from twin.core.settings import Settings

_PREFIX = "work-"


@contextmanager
def staging_folder(settings: Settings) -> Iterator[Path]:
    root = settings.folder("staging")
    remove_abandoned(settings)
    name = f"{_PREFIX}{uuid.uuid4().hex}"
    # first the lock: a folder without one is somebody's leftover
    with FileLock(_lock(root, name)):
        folder = root / name
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    _lock(root, name).unlink(missing_ok=True)


def abandoned(settings: Settings) -> list[Path]:
    """Folders whose work was killed."""
    root = settings.home / "staging"
    folders = [folder for folder in sorted(root.glob(f"{_PREFIX}*")) if folder.is_dir()]
    return [folder for folder in folders if _is_free(root, folder)]


def remove_abandoned(settings: Settings) -> int:
    found = abandoned(settings)
    for folder in found:
        shutil.rmtree(folder, ignore_errors=True)
        _lock(folder.parent, folder.name).unlink(missing_ok=True)
    return len(found)


def _is_free(root: Path, folder: Path) -> bool:
    try:
        with FileLock(_lock(root, folder.name), timeout=0):
            return True
    except Timeout:
        return False


def _lock(root: Path, name: str) -> Path:
    return root / f"{name}.lock"
