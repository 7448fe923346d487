"""Reading a table without a JVM against reading it with a warm Spark session, side by side in one run."""

from __future__ import annotations

import json
import time
from statistics import median

from features.bronze import rows_frame
from features.lake import Lake
from twin.core.tables import FIGURES
from twin.sources.declarations import reports
from twin.sources.shipped import shipped_figures


def seconds(work, repeats=7):
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return median(taken)


def test_reading_without_a_jvm(settings, spark):
    lake = Lake(settings)
    figures = [figure for source_id in reports() for figure in shipped_figures(source_id)]
    lake.replace(FIGURES, rows_frame(spark, FIGURES, figures))
    by_spark = seconds(lambda: lake.spark(FIGURES, spark).toPandas())
    by_arrow = seconds(lambda: lake.pandas(FIGURES))
    print(
        json.dumps(
            {"bench": "read_table", "rows": len(figures), "spark_over_arrow": round(by_spark / by_arrow, 2)}
        )
    )
