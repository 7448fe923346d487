"""What a file is by its name and first lines, and reading it accordingly."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from twin.sources.document import SUFFIXES as REPORT_SUFFIXES
from twin.sources.documents import ReadDocument, Refused, read_document
from twin.sources.harness.reading import FIRST_LINES, read_harness
from twin.sources.harness.registry import SUFFIXES as HARNESS_SUFFIXES
from twin.sources.harness.registry import recognised

Kind = Literal["report", "harness", "requests"]
# batch requests come in these too, but in no other shape
_REQUEST_SUFFIXES = (".jsonl", ".parquet")
# room for the longest header that `twin export` writes
_FIRST_BYTES = 8 * 1024


def kind_of(path: Path) -> Kind | None:
    """None for whatever cannot be told or read; never an error."""
    suffix = path.suffix.lower()
    try:
        if not path.is_file():
            return None
        lines = _first_lines(path) if suffix in HARNESS_SUFFIXES else []
    except OSError:
        return None
    if recognised(suffix, lines):
        return "harness"
    if suffix in REPORT_SUFFIXES:
        return "report"
    return "requests" if suffix in _REQUEST_SUFFIXES or _asks(lines) else None


def read_file(path: Path, source_id: str | None = None) -> ReadDocument:
    """A report or a harness file, whole or not at all."""
    kind = kind_of(path)
    if kind == "requests":
        raise Refused(f"{path.name} holds requests, which `twin predict` answers")
    # a file of a harness' own kind that none recognises is told so; text may be a report as well
    if kind == "harness" or (kind is None and path.suffix.lower() in HARNESS_SUFFIXES):
        return read_harness(path, source_id)
    return read_document(path, source_id)


def files_in(paths: Iterable[Path]) -> list[Path]:
    """Files as given, without the sidecars that are read with them; of a folder, what can be read there."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(file for file in path.iterdir() if kind_of(file) in ("report", "harness"))
        elif not (path.suffix == ".yaml" and path.with_suffix("").is_file()):
            found.append(path)
    return found


def _first_lines(path: Path) -> list[str]:
    with path.open("rb") as file:
        raw = file.read(_FIRST_BYTES)
    # the last character may be cut in two; text of another encoding is refused when it is read
    return [] if b"\0" in raw else raw.decode("utf-8-sig", errors="ignore").split("\n")[:FIRST_LINES]


def _asks(first_lines: list[str]) -> bool:
    """A header with a workload's family and no measured value is a table of requests."""
    header = next((line for line in first_lines if line.strip()), "")
    names = {name.strip().strip('"') for name in header.split(",")}
    return "family" in names and "metric" not in names
