"""The platform's own result file: JSON lines, a record each.

The first record of a run is `{"record": "run", "configuration": {...}, "loop": "open", "measured_at": ...}`,
with the flat columns of a request and, where the load was paced, `requested_msgs_per_s`; a run that ended
before its time says why under `problem`, and is kept without being used. Records `sample` follow with the
columns of `twin schema samples`, then `summary` with figures by their metric.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pyarrow as pa

from twin.core.checking import as_texts
from twin.core.fields import fields_of
from twin.core.metrics import METRICS
from twin.core.outside import BadInput, json_of
from twin.core.runs import Loop, Sample
from twin.sources.documents import Refused
from twin.sources.harness.recording import Lines, Recorded, Recording, RunFormat, SummaryFigure

_RECORD = "record"
_TYPES = {"integer": pa.int64(), "number": pa.float64()}
_COLUMNS = {field.name: _TYPES[field.kind] for field in fields_of(Sample) if field.kind in _TYPES}
_OURS = ("line", "run")
# beyond this whole numbers are not exact
_MOST = 2**53


def _recognises(first_lines: Sequence[str]) -> bool:
    first = next((line for line in first_lines if line.strip()), "")
    return first.lstrip().startswith("{") and f'"{_RECORD}"' in first


def _read(lines: Lines) -> Recording:
    runs: list[_Run] = []
    unread = 0
    for number, text in enumerate(lines.raw.split(b"\n"), start=1):
        if not text.strip():
            continue
        record = record_of(text)
        kind = record.pop(_RECORD, None) if record is not None else None
        if record is not None and kind == "run":
            runs.append(_Run(number, record))
        elif record is None or not runs or not runs[-1].takes(number, kind, record):
            unread += 1
    if not runs:
        raise Refused(f"{lines.name} line 1: no record of a run")
    return Recording([run.recorded() for run in runs], unread)


class _Run:
    """Records of one run as they come."""

    def __init__(self, line: int, head: Mapping[str, Any]) -> None:
        self._line, self._head = line, head
        self._rows: list[dict[str, Any]] = []
        self._summary: list[SummaryFigure] = []

    def takes(self, line: int, kind: Any, record: Mapping[str, Any]) -> bool:
        if kind == "sample":
            values = {name: record[name] for name in record if name in _COLUMNS and name not in _OURS}
            if not all(_fits(name, value) for name, value in values.items()):
                return False
            self._rows.append({"line": line, **values})
        elif kind == "summary":
            self._summary += [_figure(line, name, value) for name, value in record.items()]
        else:
            return False
        return True

    def recorded(self) -> Recorded:
        told = self._head.get("configuration")
        columns = told if isinstance(told, dict) else {}
        requested = self._head.get("requested_msgs_per_s")
        loop: Any = self._head.get("loop")
        present = [
            "line",
            *(name for name in _COLUMNS if any(name in row for row in self._rows) and name != "line"),
        ]
        schema = pa.schema([(name, _COLUMNS[name]) for name in present])
        texts = dict(zip(columns, as_texts(list(columns.values())), strict=True))
        return Recorded(
            line=self._line,
            samples=pa.Table.from_pylist(self._rows, schema),
            told={name: text for name, text in texts.items() if text is not None},
            loop=loop if loop in get_args(Loop) else "unknown",
            requested_msgs_per_s=float(requested) if _is_number(requested) and requested else None,
            summary=self._summary,
            measured_at=str(self._head["measured_at"]) if "measured_at" in self._head else None,
            problem=str(self._head["problem"]) if "problem" in self._head else None,
        )


def record_of(text: bytes) -> dict[str, Any] | None:
    """What a line says; None for one that says nothing, or not in JSON."""
    try:
        record = json_of(text, any_number=True)
    except BadInput:
        return None
    return record if isinstance(record, dict) else None


def _figure(line: int, name: str, value: Any) -> SummaryFigure:
    printed = json.dumps(value)
    known = METRICS.get(name)
    return SummaryFigure(line, name, printed, name if known else None, value if _is_number(value) else None)


def _fits(name: str, value: Any) -> bool:
    whole = pa.types.is_integer(_COLUMNS[name])
    return _is_number(value) and (not whole or isinstance(value, int))


def _is_number(value: Any) -> bool:
    """One that a column can hold: JSON knows longer ones, and Python reads some that are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST


FORMAT = RunFormat(name="twin", suffixes=(".jsonl",), recognises=_recognises, read=_read)
