"""Rows of declared tables as Spark frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import BaseModel

from features.schemas import spark_schema
from twin.core.fields import flatten
from twin.core.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows_frame(spark: SparkSession, table: Table, rows: Iterable[BaseModel]) -> DataFrame:
    return spark.createDataFrame([flatten(row) for row in rows], spark_schema(table))
