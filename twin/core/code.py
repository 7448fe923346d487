"""Which code made something: so that it is made anew when the code has changed."""

from __future__ import annotations

import hashlib
from functools import cache

from twin.core.settings import PROJECT

_COUNTED = (".py", ".yaml", ".json", ".csv", ".j2")


@cache
def code_digest(*packages: str) -> str:
    """Identifies the code and the data files of some packages, given as folders of the project."""
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted((PROJECT / package).rglob("*")):
            if path.suffix in _COUNTED:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
