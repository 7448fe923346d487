"""What a result file does not say about itself, told in a YAML file beside it, `results.csv.yaml`, or for all
files of a folder in `archive.yaml`; the file's own goes first."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from twin.core.checking import KNOWN
from twin.core.outside import BadInput, read_text, yaml_of
from twin.sources.documents import Refused

_OWN = ("source", "measured_at", "not_interpreted")
# a few dozen columns with comments; more than this is another file with that name
_MOST_BYTES = 64 * 1024
FOLDER_SIDECAR = "archive.yaml"


@dataclass(frozen=True)
class Sidecar:
    name: str
    exists: bool = False
    source: str | None = None
    measured_at: date | None = None
    # headers of columns whose meaning on this platform is not known: they stay in bronze only
    not_interpreted: frozenset[str] = frozenset()
    # configuration columns, as texts like the cells of a file
    configuration: Mapping[str, str] = field(default_factory=dict)
    # what is told of this very file, not of its whole folder
    own: frozenset[str] = frozenset()
    # of all that was told
    sha256: str | None = None


def sidecar_of(path: Path) -> Sidecar:
    own = path.with_name(f"{path.name}.yaml")
    there = [one for one in (path.with_name(FOLDER_SIDECAR), own) if one.is_file()]
    if not there:
        return Sidecar(own.name)
    by_file = {one: _checked(one) for one in there}
    told = {name: value for part in by_file.values() for name, value in part.items()}
    headers = told.pop("not_interpreted", [])
    measured_at = told.pop("measured_at", "")
    source = told.pop("source", "")
    return Sidecar(
        there[-1].name,
        exists=True,
        source=source or None,
        measured_at=date.fromisoformat(measured_at) if measured_at else None,
        not_interpreted=frozenset(headers),
        configuration={name: value for name, value in told.items() if value},
        own=frozenset(by_file.get(own, ())),
        sha256=hashlib.sha256(b"\0".join(one.read_bytes() for one in there)).hexdigest(),
    )


def _checked(path: Path) -> dict[str, Any]:
    told = _loaded(path)
    for name, value in told.items():
        if name not in KNOWN and name not in _OWN:
            near = get_close_matches(name, [*KNOWN, *_OWN], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise Refused(f"{path.name}: {name}: unknown key{hint}")
        if name == "not_interpreted":
            if not isinstance(value, list) or not all(isinstance(header, str) for header in value):
                raise Refused(f"{path.name}: not_interpreted: a list of column headers is expected")
        elif not isinstance(value, str):
            raise Refused(f"{path.name}: {name}: one value is expected")
    measured_at = told.get("measured_at", "")
    try:
        date.fromisoformat(measured_at or "2000-01-01")
    except ValueError as error:
        raise Refused(f"{path.name}: measured_at: {measured_at!r} is no date like 2022-06-03") from error
    return told


def _loaded(path: Path) -> dict[str, Any]:
    try:
        told = yaml_of(read_text(path, _MOST_BYTES), only_texts=True)
    except BadInput as error:
        raise Refused(f"{path.name} is no readable YAML: {error}") from error
    if told in (None, ""):
        return {}
    if not isinstance(told, dict) or not all(isinstance(name, str) for name in told):
        raise Refused(f"{path.name}: column: value on each line is expected")
    return told
