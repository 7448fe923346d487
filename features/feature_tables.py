"""Feature tables: what is known of hardware and flows before anything is measured, and the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from features.derivation import flow_derived, hardware_derived
from features.schemas import spark_schema
from twin.core.tables import FLOW_FEATURES, HARDWARE_FEATURES, TARGETS, TRAINING_SET, Table

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame


def hardware_features(measurements: DataFrame) -> DataFrame:
    return _derived(measurements, HARDWARE_FEATURES, hardware_derived)


def flow_features(measurements: DataFrame) -> DataFrame:
    return _derived(measurements, FLOW_FEATURES, flow_derived)


def training_set(measurements: DataFrame, hardware: DataFrame, flows: DataFrame) -> DataFrame:
    """One row per measured configuration; equal repeats are averaged."""
    from pyspark.sql import functions as f

    keys = ["configuration_id", "source_id", "exam_group", "platform_id", "workload_id"]
    measured = (
        measurements.where("fact_kind = 'measurement' AND restates IS NULL AND value IS NOT NULL")
        .groupBy(*keys)
        .pivot("metric", list(TARGETS))
        .agg(f.avg("value"))
        .where(f.coalesce(*TARGETS).isNotNull())
    )
    return (
        measured.join(hardware, "platform_id", "inner")
        .join(flows, "workload_id", "inner")
        .select(*TRAINING_SET.columns)
    )


def _derived(
    measurements: DataFrame, table: Table, derive: Callable[[pd.DataFrame], pd.DataFrame]
) -> DataFrame:
    known = [name for name in table.columns if name in measurements.columns]

    def batches(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield derive(frame)[list(table.columns)]

    return measurements.select(*known).distinct().mapInPandas(batches, spark_schema(table))
