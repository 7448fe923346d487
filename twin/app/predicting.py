"""Answers request files: predictions in request order in one file, rejects in a second."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twin.app.requests import BadRequestFile, read_requests
from twin.core.fields import Field, flatten
from twin.core.prediction import Predictor
from twin.core.tables import PREDICTIONS, REJECTS, Reject

FORMATS = (".csv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Answered:
    answers: Path
    rejects: Path | None
    rows: list[dict[str, Any]]
    rejected: list[Reject]


def answer_file(path: Path, out: Path | None, predictor: Callable[[], Predictor]) -> Answered:
    """Bad input is told before a predictor is made: loading a model takes seconds."""
    out = out or path.with_name(f"{path.stem}.predictions{path.suffix}")
    if out.suffix.lower() not in FORMATS:
        raise BadRequestFile(f"{out} is none of {', '.join(FORMATS)}")
    rejects_path = out.with_name(f"{out.stem}.rejects{out.suffix}")
    requests = read_requests(path)
    answers = predictor().predict([configuration for _, configuration in requests.asked])
    rows = [
        {"request_id": request_id} | flatten(answer)
        for (request_id, _), answer in zip(requests.asked, answers, strict=True)
    ]
    _write(out, PREDICTIONS.fields, rows)
    if requests.rejects:
        _write(rejects_path, REJECTS.fields, [flatten(reject) for reject in requests.rejects])
    else:
        # rejects of an earlier try must not look like this one's
        rejects_path.unlink(missing_ok=True)
    return Answered(out, rejects_path if requests.rejects else None, rows, requests.rejects)


def _write(path: Path, fields: tuple[Field, ...], rows: Iterable[Mapping[str, Any]]) -> None:
    """The file appears whole or not at all."""
    draft = path.with_name(f".{path.name}.part")
    complete = [{field.name: row.get(field.name) for field in fields} for row in rows]
    match path.suffix.lower():
        case ".csv":
            with draft.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, [field.name for field in fields], lineterminator="\n")
                writer.writeheader()
                writer.writerows(complete)
        case ".jsonl":
            draft.write_text("".join(json.dumps(row) + "\n" for row in complete), encoding="utf-8")
        case _:
            import pyarrow as pa
            from pyarrow import parquet

            kinds = {"text": pa.string(), "integer": pa.int64(), "number": pa.float64(), "flag": pa.bool_()}
            schema = pa.schema([(field.name, kinds[field.kind]) for field in fields])
            parquet.write_table(pa.Table.from_pylist(complete, schema), draft)
    draft.replace(path)
