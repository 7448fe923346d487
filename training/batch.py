"""Batch requests answered: a frame of texts in, answers and rejects out, here or on Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from twin.core.checking import check
from twin.core.columns import Columns
from twin.core.prediction import Answers
from twin.core.spreadsheets import shielded_table
from twin.core.tables import PREDICTIONS, REJECTS, Table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

# what the frames of both have beside the columns of their tables: the row of the request, and for a reject
# why
ROW, FIELD, REASON, FIRST_ROW = "row", "field", "reason", "first_row"
COLUMNS = (ROW, *PREDICTIONS.columns, FIELD, REASON)
_SAME_ID = (("request_id", "another row has the same request_id"),)


class Answering(Protocol):
    def answer(self, columns: Columns, target: str, predictor: str) -> Answers: ...


@dataclass(frozen=True)
class Asked:
    """Who is asked for what, in the order of the answers to each request."""

    by: Answering
    predictors: Sequence[str]
    targets: Sequence[str]

    def answer(self, requests: pd.DataFrame) -> pd.DataFrame:
        """Answers and rejects of some requests, in their order. `requests`: texts by column, with the row's
        number and id, what else it says under `extra`, and the first row of the same id under `first_row`."""
        texts = {
            name: requests[name].to_numpy(object)
            for name in requests.columns
            if name not in (ROW, "request_id", "extra", FIRST_ROW)
        }
        extra = requests["extra"].to_numpy(object) if "extra" in requests else None
        checked = check(len(requests), texts, extra)
        problems = checked.problems | {int(at): list(_SAME_ID) for at in _repeated(requests)}
        good = np.array([at not in problems for at in checked.rows], dtype=bool)
        columns = checked.columns.only(np.flatnonzero(good))
        rows, ids = requests[ROW].to_numpy(), requests["request_id"].to_numpy(object)
        at = checked.rows[good]
        parts = []
        for order, (predictor, target) in enumerate(
            (predictor, target) for predictor in self.predictors for target in self.targets
        ):
            said = self.by.answer(columns, target, predictor).columns()
            parts.append(
                pd.DataFrame({ROW: rows[at], "order": order, "request_id": ids[at], **said}, dtype=object)
            )
        rejected = [
            (rows[place], place_in, ids[place], field, reason)
            for place, found in problems.items()
            for place_in, (field, reason) in enumerate(found)
        ]
        parts.append(
            pd.DataFrame(rejected, columns=[ROW, "order", "request_id", FIELD, REASON], dtype=object)
        )
        whole = pd.concat([part for part in parts if len(part)] or parts[:1])
        whole = whole.sort_values([ROW, "order"], kind="stable").reindex(columns=list(COLUMNS))
        cells = whole.reset_index(drop=True).astype(object)
        cells[cells.isna()] = None
        return cells


def _repeated(requests: pd.DataFrame) -> np.ndarray[Any, Any]:
    if FIRST_ROW not in requests:
        return np.zeros(0, dtype=np.int64)
    first = pd.to_numeric(requests[FIRST_ROW]).to_numpy(float)
    return np.flatnonzero(np.isfinite(first) & (first < requests[ROW].to_numpy(float)))


@dataclass(frozen=True)
class Block:
    """A finished piece of the two files that a batch is answered into, from its first row on."""

    row: int
    answers: bytes
    rejects: bytes
    answered: int
    excused: int
    rejected: int


def block_of(found: pd.DataFrame, suffix: str) -> Block:
    bad = found[REASON].notna()
    answers, rejects = found.loc[~bad, list(PREDICTIONS.columns)], found.loc[bad, list(REJECTS.columns)]
    excused = int(answers["excuse"].notna().sum())
    return Block(
        row=int(found[ROW].iloc[0]),
        answers=_written(answers, PREDICTIONS, suffix),
        rejects=_written(rejects, REJECTS, suffix),
        answered=len(answers) - excused,
        excused=excused,
        rejected=int(rejects[ROW].nunique()),
    )


def arrow_schema(table: Table) -> pa.Schema:
    import pyarrow as pa

    kinds = {"text": pa.string(), "integer": pa.int64(), "number": pa.float64(), "flag": pa.bool_()}
    return pa.schema([(field.name, kinds[field.kind]) for field in table.fields])


def _written(rows: pd.DataFrame, table: Table, suffix: str) -> bytes:
    """Lines of text, without a header; for Parquet, which cannot be pieced together, an Arrow stream."""
    import pyarrow as pa
    from pyarrow import csv

    if rows.empty:
        return b""
    typed = pa.Table.from_pandas(rows, arrow_schema(table), preserve_index=False)
    if suffix == ".jsonl":
        return "".join(json.dumps(row) + "\n" for row in typed.to_pylist()).encode()
    sink = pa.BufferOutputStream()
    if suffix == ".csv":
        options = csv.WriteOptions(include_header=False, quoting_style="needed")
        csv.write_csv(shielded_table(typed), sink, options)
    else:
        with pa.ipc.new_stream(sink, typed.schema) as stream:
            stream.write_table(typed)
    return bytes(sink.getvalue())


def answer_on_spark(
    spark: SparkSession, requests: Path, ids: Path | None, asked: Asked, suffix: str, out: Path
) -> None:
    """Requests staged as Arrow streams, one a row, each answered into a block. Cells as columns of Spark
    would spend more time on their way through the JVM than on their answers."""
    from pyspark.sql import functions as f

    # one file is one partition
    for name in ("maxPartitionBytes", "openCostInBytes"):
        spark.conf.set(f"spark.sql.files.{name}", "128m")
    repeated: dict[str, int] = {}
    if ids is not None:
        counted = spark.read.parquet(str(ids)).groupBy("request_id")
        several = counted.agg(f.count("*").alias("rows"), f.min(ROW).alias(FIRST_ROW)).where("rows > 1")
        repeated = {one["request_id"]: one[FIRST_ROW] for one in several.toLocalIterator()}

    def answered(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        from threadpoolctl import threadpool_limits

        # as many tasks as cores: threads of their own would only get into each other's way
        with threadpool_limits(1):
            for stream in (stream for frame in frames for stream in frame["stream"]):
                some = unstaged(stream)
                some[FIRST_ROW] = some["request_id"].map(repeated)
                yield pd.DataFrame([asdict(block_of(asked.answer(some), suffix))])

    schema = "row long, answers binary, rejects binary, answered long, excused long, rejected long"
    spark.read.parquet(str(requests)).mapInPandas(answered, schema).write.parquet(str(out))


def staged(requests: pd.DataFrame) -> bytes:
    """Texts as an Arrow stream; what else a row says goes as JSON."""
    import pyarrow as pa

    extra = [None if one is None else json.dumps(one) for one in requests["extra"]]
    packed = requests.assign(extra=pd.Series(extra, index=requests.index, dtype=object))
    table = pa.Table.from_pandas(packed, preserve_index=False)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def unstaged(stream: bytes) -> pd.DataFrame:
    import pyarrow as pa

    requests: pd.DataFrame = pa.ipc.open_stream(stream).read_pandas()
    extra = [None if one is None else json.loads(one) for one in requests["extra"]]
    return requests.assign(extra=pd.Series(extra, index=requests.index, dtype=object))
