"""The one way to get a Spark session."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from features.java import java_home
from twin.core.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_QUIET = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"


def on_this_machine(master: str) -> bool:
    """Whether driver and workers share a machine, so that nobody outside has to reach the driver."""
    return re.match(r"local|spark://(localhost|127\.[\d.]+):", master) is not None


def spark_session(settings: Settings, app: str = "brokertwin") -> SparkSession:
    os.environ["JAVA_HOME"] = java_home(settings.folder())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if on_this_machine(settings.spark_master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(settings.spark_master)
        .appName(app)
        .config("spark.sql.session.timeZone", "UTC")
        # Delta readers refuse nanosecond and INT96 timestamps
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.ui.showConsoleProgress", "false")
        # a page that is not what was written is an error, not a figure
        .config("spark.hadoop.parquet.page.verify-checksum.enabled", "true")
    )
    # nothing more is set for a cluster: what is set here would win over the user's spark-defaults.conf
    if settings.spark_master.startswith("local"):
        # small tables on one machine: start-up counts, not peak speed
        builder = (
            builder.config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.extraJavaOptions", f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 {_QUIET}")
            .config("spark.sql.warehouse.dir", (settings.home / "spark-warehouse").as_uri())
        )
    return builder.getOrCreate()


@contextmanager
def running_spark(settings: Settings, app: str = "brokertwin") -> Iterator[SparkSession]:
    """A session for one piece of work; one that was already running is lent and left running."""
    from pyspark.sql import SparkSession

    lent = SparkSession.getActiveSession()
    spark = lent or spark_session(settings, app)
    try:
        yield spark
    finally:
        if lent is None:
            spark.stop()
