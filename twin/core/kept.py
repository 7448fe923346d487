"""Secrets that are made up once and kept in a file that only its owner can read."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def kept_secret(path: Path, new: str) -> str:
    """What the file has; `new` where there is none. It appears whole or not at all: of several processes
    that start at once one makes it up and the others read that."""
    if not path.exists():
        # readable by nobody else from the first moment on
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(new)
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            Path(draft).unlink()
    return path.read_text()
