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
    """One row per measured configuration; equal repeats are averaged, times count as rates."""
    from pyspark.sql import functions as f

    targets = measurements.where(
        "fact_kind = 'measurement' AND restates IS NULL AND exam_group IS NOT NULL AND value > 0"
    ).selectExpr(
        "configuration_id", "source_id", "exam_group", "platform_id", "workload_id", "published_at",
        # a table that is cut by message size can be cut by its printed columns as well
        "CASE WHEN startswith(exam_group, table_label || '/') THEN table_label || '/' || column_header END "
        "AS exam_column",
        "CASE metric WHEN 'elapsed_ms' THEN 'throughput_msgs_per_s' ELSE metric END AS target",
        "CASE metric WHEN 'elapsed_ms' THEN 1000 / value ELSE value END AS value",
    ).where(f.col("target").isin(*TARGETS))  # fmt: skip
    # a configuration that two groups or sources measured belongs to the first of them
    first = f.min(f.struct("published_at", "source_id", "exam_group", "exam_column"))
    measured = (
        targets.groupBy("configuration_id", "platform_id", "workload_id")
        .agg(
            first.alias("first"),
            f.count("*").alias("figures"),
            *(f.avg(f.when(f.col("target") == target, f.col("value"))).alias(target) for target in TARGETS),
        )
        .select("*", "first.*")
    )
    return (
        measured.join(hardware.drop("published_at"), "platform_id", "inner")
        .join(flows.drop("published_at"), "workload_id", "inner")
        .select(*TRAINING_SET.columns)
    )


def _derived(
    measurements: DataFrame, table: Table, derive: Callable[[pd.DataFrame], pd.DataFrame]
) -> DataFrame:
    from pyspark.sql import functions as f

    known = [name for name in table.columns if name in measurements.columns and name != "published_at"]

    def batches(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield derive(frame)[list(table.columns)]

    with_key = measurements.where(" AND ".join(f"{name} IS NOT NULL" for name in table.key))
    distinct = with_key.groupBy(*known).agg(f.min("published_at").alias("published_at"))
    return distinct.mapInPandas(batches, spark_schema(table))
