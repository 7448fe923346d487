"""A document as lines, whatever file it came in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TEXT_SUFFIXES = (".txt", ".md", ".text")
SUFFIXES = (*TEXT_SUFFIXES, ".pdf")
# far beyond any report or table of results: a log or a dump that came here by mistake
MOST_BYTES = 32 * 1024 * 1024


class UnreadableDocument(Exception):
    """The file holds no text that could be read."""


@dataclass(frozen=True)
class Document:
    name: str
    sha256: str
    lines: tuple[str, ...]

    @classmethod
    def load(cls, path: Path, suffixes: Sequence[str] = SUFFIXES) -> Document:
        if not path.is_file():
            raise UnreadableDocument(f"{path} does not exist or is no file")
        if path.suffix.lower() not in suffixes:
            raise UnreadableDocument(f"{path.name} is none of {', '.join(suffixes)}")
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise UnreadableDocument(
                f"{path.name} has {size / 2**20:.0f} MB; at most {MOST_BYTES / 2**20:.0f} MB are read"
            )
        raw = path.read_bytes()
        lines = _pdf_lines(path) if path.suffix.lower() == ".pdf" else _text_lines(path.name, raw)
        if not any(line.strip() for line in lines):
            raise UnreadableDocument(f"{path.name} holds no text")
        return cls(path.name, hashlib.sha256(raw).hexdigest(), tuple(lines))


def check_text(name: str, raw: bytes) -> str:
    """The text of a file; raises for what is none."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UnreadableDocument(f"{name} is not UTF-8 text (line {line}, byte {error.start})") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise UnreadableDocument(f"{name} is binary, not text (line {line})")
    return text


def _text_lines(name: str, raw: bytes) -> list[str]:
    # only line feeds end a line: other separators would shift the numbers a person sees in an editor
    return [line.removesuffix("\r") for line in check_text(name, raw).split("\n")]


def _pdf_lines(path: Path) -> list[str]:
    """Text line by line; a ruled table's rows as pipe rows, in its place."""
    import pdfplumber
    from pdfminer.pdfparser import PDFSyntaxError
    from pdfplumber.utils.exceptions import PdfminerException

    try:
        with pdfplumber.open(path) as pdf:
            return [line for page in pdf.pages for line in _page_lines(page)]
    except (PDFSyntaxError, PdfminerException) as error:
        raise UnreadableDocument(f"{path.name} is no readable PDF: {error}") from error


def _page_lines(page: Any) -> Iterator[str]:
    tables = sorted(page.find_tables(), key=lambda table: table.bbox[1])
    above = 0.0
    for table in tables:
        top, bottom = table.bbox[1], table.bbox[3]
        yield from _band_lines(page, above, top)
        for row in table.extract():
            yield "| " + " | ".join(re.sub(r"\s+", " ", cell or "").strip() for cell in row) + " |"
        yield ""
        above = bottom
    yield from _band_lines(page, above, float(page.height))


def _band_lines(page: Any, top: float, bottom: float) -> list[str]:
    if bottom - top < 1:
        return []
    return str(page.crop((0, top, page.width, bottom)).extract_text() or "").split("\n")
