"""What a file is by its name and first lines, and reading it accordingly."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from twin.sources.document import SUFFIXES as REPORT_SUFFIXES
from twin.sources.documents import ReadDocument, Refused, read_document
from twin.sources.harness.reading import FIRST_LINES, read_harness
from twin.sources.harness.registry import FORMATS, RUN_FORMATS, run_format, suffixes_of, table_format
from twin.sources.harness.sidecar import FOLDER_SIDECAR

# a harness file is a table of measurements; one of runs holds their intervals, and there may be thousands
Kind = Literal["report", "harness", "runs", "requests"]
_TABLE_SUFFIXES = suffixes_of(FORMATS)
_RUN_SUFFIXES = suffixes_of(RUN_FORMATS)
_PACKED = (".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".tar")
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
        lines = _first_lines(path) if suffix in (*_TABLE_SUFFIXES, *_RUN_SUFFIXES) else []
    except OSError:
        return None
    # these are more particular: any comment may stand over a table
    if run_format(suffix, lines):
        return "runs"
    if table_format(suffix, lines):
        return "harness"
    if suffix in REPORT_SUFFIXES:
        return "report"
    return "requests" if suffix in _REQUEST_SUFFIXES or _asks(lines) else None


def read_file(path: Path, source_id: str | None = None) -> ReadDocument:
    """A report or a table of a harness, whole or not at all."""
    kind, suffix = kind_of(path), path.suffix.lower()
    if kind == "requests":
        raise Refused(f"{path.name} holds requests, which `twin predict` answers")
    if suffix in _PACKED:
        raise Refused(f"{path.name} is packed: unpack it and take the files")
    # a file of a harness' own kind that none recognises is told so; text may be a report as well
    if kind == "harness" or (kind is None and suffix in _TABLE_SUFFIXES):
        return read_harness(path, source_id)
    if kind is None and path.is_file() and suffix in _RUN_SUFFIXES:
        raise Refused(f"{path.name} line 1: its lines are those of no harness ({_names()})")
    return read_document(path, source_id)


def files_in(paths: Iterable[Path]) -> list[Path]:
    """Files as given, without the sidecars that are read with them; of a folder and those in it, what can be
    read there. A link in a folder could lead anywhere and is not followed."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += [file for file in _below(path) if kind_of(file) in ("report", "harness", "runs")]
        elif path.name != FOLDER_SIDECAR and not (path.suffix == ".yaml" and path.with_suffix("").is_file()):
            found.append(path)
    return found


def _below(folder: Path) -> list[Path]:
    files = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    return sorted(file for file in files if not file.is_symlink())


def _names() -> str:
    return ", ".join(one.name for one in RUN_FORMATS)


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
