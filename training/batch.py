"""Batch requests answered: a frame of texts in, answers and rejects out, here or on Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from twin.core.checking import check
from twin.core.columns import Columns
from twin.core.prediction import Answers
from twin.core.tables import PREDICTIONS, REJECTS

if TYPE_CHECKING:
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


def answers_of(found: pd.DataFrame) -> pd.DataFrame:
    return found.loc[found[REASON].isna(), list(PREDICTIONS.columns)]


def rejects_of(found: pd.DataFrame) -> pd.DataFrame:
    return found.loc[found[REASON].notna(), list(REJECTS.columns)]


def answer_on_spark(spark: SparkSession, staged: Path, asked: Asked, out: Path) -> None:
    """Requests staged as Parquet files, each answered into a Parquet file of its own."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

    from features.schemas import spark_schema

    # one file is one partition: what was in order stays in order
    for name in ("maxPartitionBytes", "openCostInBytes"):
        spark.conf.set(f"spark.sql.files.{name}", "128m")
    requests = spark.read.parquet(str(staged))
    twice = (
        requests.groupBy("request_id")
        .agg(f.count("*").alias("rows"), f.min(ROW).alias(FIRST_ROW))
        .where("rows > 1")
        .select("request_id", FIRST_ROW)
    )
    kinds = {field.name: field.dataType for field in spark_schema(PREDICTIONS)}
    texts = {FIELD: StringType(), REASON: StringType(), ROW: LongType()}
    schema = StructType([StructField(name, texts.get(name) or kinds[name]) for name in COLUMNS])
    numbers = [field.name for field in schema if isinstance(field.dataType, DoubleType)]

    def answered(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            found = asked.answer(_unpacked(frame))
            yield found.astype(dict.fromkeys(numbers, "float64"))

    requests.join(f.broadcast(twice), "request_id", "left").mapInPandas(answered, schema).write.parquet(
        str(out)
    )


def _unpacked(frame: pd.DataFrame) -> pd.DataFrame:
    """What else a row says travels as JSON."""
    found = [None if one is None else json.loads(one) for one in frame["extra"]]
    return frame.assign(extra=pd.Series(found, index=frame.index, dtype=object))
