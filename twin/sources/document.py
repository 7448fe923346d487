"""A document as lines, whatever file it came in."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from twin.core.outside import BadInput, read_bytes, text_of
from twin.sources.pdf import pdf_lines

TEXT_SUFFIXES = (".txt", ".md", ".text")
SUFFIXES = (*TEXT_SUFFIXES, ".pdf")
# far beyond any report or table of results: a log or a dump that came here by mistake
MOST_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Document:
    name: str
    sha256: str
    lines: tuple[str, ...]

    @classmethod
    def load(cls, path: Path, suffixes: Sequence[str] = SUFFIXES) -> Document:
        if path.suffix.lower() not in suffixes:
            raise BadInput(f"{path.name} is none of {', '.join(suffixes)}")
        raw = read_bytes(path, MOST_BYTES)
        lines = pdf_lines(path.name, raw) if path.suffix.lower() == ".pdf" else _text_lines(path.name, raw)
        if not any(line.strip() for line in lines):
            raise BadInput(f"{path.name} holds no text")
        return cls(path.name, hashlib.sha256(raw).hexdigest(), tuple(lines))


def _text_lines(name: str, raw: bytes) -> list[str]:
    # only line feeds end a line: other separators would shift the numbers a person sees in an editor
    return [line.removesuffix("\r") for line in text_of(name, raw).split("\n")]
