"""What a result file does not say about itself, told in a YAML file beside it: `results.csv.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from twin.core.checking import KNOWN
from twin.sources.documents import Refused

_OWN = ("source", "measured_at", "not_interpreted")
# a few dozen columns with comments; more than this is another file with that name
_MOST_BYTES = 64 * 1024


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


def sidecar_of(path: Path) -> Sidecar:
    beside = path.with_name(f"{path.name}.yaml")
    if not beside.is_file():
        return Sidecar(beside.name)
    told = _loaded(beside)
    for name in told:
        if name not in KNOWN and name not in _OWN:
            near = get_close_matches(name, [*KNOWN, *_OWN], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise Refused(f"{beside.name}: {name}: unknown key{hint}")
    headers = told.pop("not_interpreted", [])
    if not isinstance(headers, list) or not all(isinstance(header, str) for header in headers):
        raise Refused(f"{beside.name}: not_interpreted: a list of column headers is expected")
    for name, value in told.items():
        if not isinstance(value, str):
            raise Refused(f"{beside.name}: {name}: one value is expected")
    measured_at = told.pop("measured_at", "")
    try:
        measured = date.fromisoformat(measured_at) if measured_at else None
    except ValueError as error:
        raise Refused(f"{beside.name}: measured_at: {measured_at!r} is no date like 2022-06-03") from error
    source = told.pop("source", "")
    configuration = {name: value for name, value in told.items() if value}
    return Sidecar(beside.name, True, source or None, measured, frozenset(headers), configuration)


def _loaded(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MOST_BYTES:
        raise Refused(f"{path.name} has more than {_MOST_BYTES // 1024} KB")
    try:
        # Builds nothing but texts, lists and mappings, so version 9.10 stays what was written
        told = yaml.load(path.read_text(encoding="utf-8-sig"), yaml.BaseLoader)  # noqa: S506
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"{path.name} is no readable YAML: {' '.join(str(error).split())}") from error
    if told in (None, ""):
        return {}
    if not isinstance(told, dict) or not all(isinstance(name, str) for name in told):
        raise Refused(f"{path.name}: column: value on each line is expected")
    return told
