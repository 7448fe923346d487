"""Figures with their meaning, and the split into trusted and quarantined ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from features.schemas import spark_schema
from twin.core.fields import flatten, pick
from twin.core.measurement import Origin, PrintedFigure
from twin.core.tables import MEASUREMENTS
from twin.sources.reading import interpret
from twin.sources.report import reports

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame


def interpreted(figures: DataFrame) -> DataFrame:
    """Bronze figures as measurements, by the declarations of their reports."""
    return figures.mapInPandas(_interpret_batches, spark_schema(MEASUREMENTS))


def split(measurements: DataFrame, findings: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Measurements to trust and measurements to quarantine; every row is in exactly one of the two."""
    accused = findings.where("severity = 'error'").select("figure_id").distinct()
    return (
        measurements.join(accused, "figure_id", "left_anti"),
        measurements.join(accused, "figure_id", "left_semi"),
    )


def _interpret_batches(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    import pandas as pd

    for batch in batches:
        rows = [
            flatten(interpret(_figure(row), reports()[row["source_id"]])) for row in batch.to_dict("records")
        ]
        # object columns keep integers with gaps integers on their way through Arrow
        yield pd.DataFrame(rows, columns=list(MEASUREMENTS.columns), dtype=object)


def _figure(row: Mapping[Any, Any]) -> PrintedFigure:
    return PrintedFigure.model_validate(pick(row, PrintedFigure) | {"origin": pick(row, Origin)})
