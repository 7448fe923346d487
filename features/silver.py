"""Figures with their meaning, and the split into trusted and quarantined ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from features.arrow import arrow_schema
from features.schemas import spark_schema
from twin.core.fields import flatten
from twin.core.tables import MEASUREMENTS
from twin.sources.declarations import reports
from twin.sources.harness.interpreting import interpret_harness
from twin.sources.harness.reading import PREFIX
from twin.sources.harness.run_measuring import measurements_of
from twin.sources.interpreting import interpret
from twin.sources.shipped import figure_from

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame


def interpreted(figures: DataFrame) -> DataFrame:
    """Bronze figures as measurements, by the declarations of their reports or their harness's format.

    A report's figures refer to each other, so they are interpreted together.
    """
    declared = figures.where("declared_as IS NOT NULL")
    return declared.groupBy("source_id").applyInPandas(_interpret_source, spark_schema(MEASUREMENTS))


def measured(runs: DataFrame) -> DataFrame:
    """Harness runs as measurements."""

    def batches(some: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in some:
            found = [flatten(one) for row in batch.to_pylist() for one in measurements_of(row)]
            yield pa.RecordBatch.from_pylist(found, arrow_schema(MEASUREMENTS))

    return runs.where("configuration_id IS NOT NULL").mapInArrow(batches, spark_schema(MEASUREMENTS))


def split(measurements: DataFrame, findings: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Measurements to trust and measurements to quarantine; every row is in exactly one of the two."""
    accused = findings.where("severity = 'error'").select("figure_id").distinct()
    return (
        measurements.join(accused, "figure_id", "left_anti"),
        measurements.join(accused, "figure_id", "left_semi"),
    )


def _interpret_source(figures: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    source_id = figures["source_id"].iloc[0]
    printed = [figure_from(row) for row in figures.to_dict("records")]
    is_harness = source_id.startswith(PREFIX)
    measured = interpret_harness(printed) if is_harness else interpret(printed, reports()[source_id])
    # object columns keep integers with gaps integers on their way through Arrow
    return pd.DataFrame([flatten(one) for one in measured], columns=list(MEASUREMENTS.columns), dtype=object)
