"""Printed figures into the lake."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from features.schemas import spark_schema
from twin.core.fields import flatten
from twin.core.measurement import PrintedFigure
from twin.core.tables import FIGURES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def figures_frame(spark: SparkSession, figures: Iterable[PrintedFigure]) -> DataFrame:
    return spark.createDataFrame([flatten(figure) for figure in figures], spark_schema(FIGURES))
