"""A report document as lines, whatever file it came in."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path


class UnreadableDocument(Exception):
    """The file holds no text that could be a report."""


@dataclass(frozen=True)
class Document:
    name: str
    sha256: str
    lines: tuple[str, ...]

    @classmethod
    def load(cls, path: Path) -> Document:
        raw = path.read_bytes()
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnreadableDocument(f"{path.name} is not UTF-8 text (byte {error.start})") from error
        if not text.strip():
            raise UnreadableDocument(f"{path.name} is empty")
        # only line feeds end a line: other separators would shift the numbers a person sees in an editor
        return cls(path.name, hashlib.sha256(raw).hexdigest(), tuple(text.split("\n")))
