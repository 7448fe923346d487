"""Writes into a table rows that no executor has the memory for; a process of its own, for a real cluster."""

from __future__ import annotations

import sys

from pyspark.sql import functions as f

from features.lake import Lake, WriteFailed
from features.session import running_spark
from twin.core.settings import Settings
from twin.core.tables import FIGURES

# as many times each text: more than an executor has memory for
_TIMES = 400_000_000

if __name__ == "__main__":
    settings = Settings.from_environment()
    lake = Lake(settings)
    with running_spark(settings, "out of memory") as spark:
        rows = lake.spark(FIGURES, spark)
        try:
            lake.replace(FIGURES, rows.withColumn("printed", f.repeat(f.col("printed"), f.lit(_TIMES))))
        except WriteFailed as error:
            print(error)
            sys.exit(1)
