"""A file of interval samples to the rows of `samples` and `runs`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from twin.core.checking import KNOWN, problems_of
from twin.core.configuration import Configuration
from twin.core.outside import BadInput, read_bytes, text_of
from twin.sources.documents import Refused
from twin.sources.harness.reading import FIRST_LINES, PREFIX, named_source, slug
from twin.sources.harness.recording import Lines, Recorded, Recording
from twin.sources.harness.registry import run_format
from twin.sources.harness.sidecar import Sidecar, sidecar_of
from twin.sources.harness.steady import steady_state

# a file is read whole: this many bytes take about three times as much memory
MOST_BYTES = 1024**3
# what a summary's rate is an estimate of, by its metric; the first that is printed stands for the run
_PRINTED_RATES = {"average_msgs_per_s": "average", "thread_sum_msgs_per_s": "thread_sum"}


# hashes of a file and of what describes it: the same file with another description says something else
Content = tuple[str, str | None]


@dataclass(frozen=True)
class ReadRuns:
    """What one file holds. All of it belongs to one tool and month."""

    tool: str
    month: str
    # columns of the table `runs`, but for those of the ingestion
    runs: Sequence[Mapping[str, Any]]
    # columns of the table `samples` that the tool prints, but for tool and month
    samples: pa.Table


def read_runs(
    path: Path, source: str | None = None, known: Collection[Content] = frozenset()
) -> ReadRuns | None:
    """One file, whole or not at all; a run whose configuration is not understood is kept with the reason.
    None for a file that is known already."""
    raw = _bytes(path)
    sidecar = sidecar_of(path)
    sha256 = hashlib.sha256(raw).hexdigest()
    if (sha256, sidecar.sha256) in known:
        return None
    form = run_format(path.suffix, raw[: 8 * 1024].decode(errors="ignore").split("\n")[:FIRST_LINES])
    if form is None:
        raise Refused(f"{path.name} line 1: its lines are those of no harness")
    recording = form.read(Lines(path.name, raw))
    if not recording.runs:
        raise Refused(f"{path.name}: it ends without a run")
    document_id = "-".join(part for part in (slug(path.stem), sha256[:8]) if part)
    runs = [_Described.of(one, sidecar) for one in recording.runs]
    if all(one.problem for one in runs):
        raise Refused(f"{path.name}: no run can be used; line {runs[0].run.line}: {runs[0].problem}")
    measured_at = _measured_at(path.name, recording, sidecar)
    source_id = named_source(source or sidecar.source, "the given source id") or _source_of(runs)
    month = f"{measured_at:%Y-%m}"
    about = {
        "source_id": source_id,
        "document_id": document_id,
        "tool": form.name,
        "month": month,
        "measured_at": measured_at,
        "document_name": path.name,
        "document_sha256": sha256,
        "description_sha256": sidecar.sha256,
        "unread_lines": recording.unread_lines,
    }
    return ReadRuns(
        form.name,
        month,
        [about | _row(number, one, about) for number, one in enumerate(runs, start=1)],
        _samples(runs, source_id, document_id),
    )


@dataclass(frozen=True)
class _Described:
    """A run with what file and sidecar say of it together."""

    run: Recorded
    told: Mapping[str, str]
    problem: str | None
    configuration_id: str | None
    configuration: Mapping[str, Any]

    @classmethod
    def of(cls, run: Recorded, sidecar: Sidecar) -> _Described:
        told = {**sidecar.configuration, **run.told}
        problem = run.problem or _contradiction(run, sidecar)
        configuration_id, columns, unknown = _configuration(tuple(sorted(told.items())))
        problem = problem or unknown
        return cls(run, told, problem, None if problem else configuration_id, {} if problem else columns)


def _contradiction(run: Recorded, sidecar: Sidecar) -> str | None:
    """A folder is described as a whole: what a file says of itself goes before that."""
    for name, value in sidecar.configuration.items():
        if name in sidecar.own and run.told.get(name, value) != value:
            return f"{name}: {run.told[name]} on line {run.line}, {value} in {sidecar.name}"
    return None


@lru_cache(maxsize=10_000)
def _configuration(told: tuple[tuple[str, str], ...]) -> tuple[str | None, dict[str, Any], str | None]:
    """Id, columns, and what is wrong. Runs of an archive repeat their configurations."""
    columns = {name: value for name, value in told if name in KNOWN}
    try:
        configuration = Configuration.from_flat(columns)
    except ValidationError:
        return None, {}, "; ".join(f"{name}: {reason}" for name, reason in problems_of(columns))
    return configuration.configuration_id, configuration.flat(), None


def _row(number: int, one: _Described, about: Mapping[str, Any]) -> dict[str, Any]:
    run = one.run
    by_metric = {figure.metric: figure for figure in reversed(run.summary) if figure.value is not None}
    printed = next((by_metric[metric] for metric in _PRINTED_RATES if metric in by_metric), None)
    steady = steady_state(run.samples, run.requested_msgs_per_s, printed.value if printed else None)
    rate = steady.get("rate_msgs_per_s")
    if printed is not None and "estimator" not in steady:
        steady["estimator"] = _PRINTED_RATES[str(printed.metric)]
    line = printed.line if printed is not None and steady["verdict"] == "summary_only" else run.line
    return {
        **steady,
        "figure_id": f"{about['source_id']}/{about['document_id']}:{run.line}:{number}-0",
        "line": line,
        "printed": printed.printed if steady["verdict"] == "summary_only" and printed else _text(rate),
        "run": number,
        "loop": run.loop,
        "requested_msgs_per_s": run.requested_msgs_per_s,
        "printed_msgs_per_s": printed.value if printed else None,
        "total_messages": by_metric["messages"].value if "messages" in by_metric else None,
        "run_s": by_metric["run_s"].value if "run_s" in by_metric else None,
        "summary": json.dumps([list(vars(figure).values()) for figure in run.summary]),
        "told": json.dumps(dict(one.told), ensure_ascii=False),
        "problem": one.problem,
        "configuration_id": one.configuration_id,
        **one.configuration,
    }


def _text(rate: float | None) -> str:
    return "" if rate is None else repr(rate)


def _samples(runs: Sequence[_Described], source_id: str, document_id: str) -> pa.Table:
    table = pa.concat_tables([one.run.samples for one in runs], promote_options="default")
    sizes = [len(one.run.samples) for one in runs]
    table = table.append_column("run", pa.array(np.repeat(np.arange(1, len(runs) + 1), sizes)))
    for name, text in (("source_id", source_id), ("document_id", document_id)):
        constant = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(table), np.int8)), pa.array([text]))
        table = table.append_column(name, constant)
    return table


def _measured_at(name: str, recording: Recording, sidecar: Sidecar) -> date:
    told = next((run.measured_at for run in recording.runs if run.measured_at), None)
    if told is None and sidecar.measured_at is not None:
        return sidecar.measured_at
    try:
        return date.fromisoformat((told or "")[:10])
    except ValueError as error:
        said = f"{told!r} is no date like 2026-11-16" if told else "nothing says when it was measured"
        raise Refused(f"{name}: {said}; {sidecar.name} beside it has to say measured_at") from error


def _source_of(runs: Sequence[_Described]) -> str:
    """Files that nobody gave a name belong together by what was measured: a product on a machine."""
    columns = next(one.configuration for one in runs if not one.problem)
    return PREFIX + slug(f"{columns['product']} {columns['machine']}")


def _bytes(path: Path) -> bytes:
    try:
        raw = read_bytes(path, MOST_BYTES)
        text_of(path.name, raw)
    except BadInput as error:
        raise Refused(str(error)) from error
    return raw.removeprefix(b"\xef\xbb\xbf")
