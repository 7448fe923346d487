"""Intervals of harness runs into bronze, what each run amounts to into silver."""

from datetime import timedelta
from typing import Any

from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable, dag, task

from dags.assets import RUNS, WAITING_RUNS
from dags.rules import DAG_RULES, SPARK

DOC = """
Takes all files of harness runs that wait in the `inbox` at once, side by side on Spark: their intervals
go into `bronze/samples`, what each run amounts to into `silver/runs`. What the files do not say of the
machine stands in `FILE.yaml` beside each, or in `archive.yaml` for all. Then small files are put
together, and samples older than `TWIN_KEEP_SAMPLES_MONTHS` removed. Runs hourly and when a file lands.

A file that could not be read is in `refused` with the reason beside it; the others were taken. What the
expectations say of the new samples is in the log, in the event of the asset `runs` and in the Data Docs.

**When it fails:** the log names the table and the cause. What was half done is taken back by the next
try, and the files are still in the inbox: remove the cause and clear the task, or wait for the next run.
"""


@dag(
    dag_id="ingest_runs",
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("45 * * * *", timezone="UTC"), assets=[WAITING_RUNS]
    ),
    doc_md=DOC,
    **DAG_RULES,
)
def ingest_runs() -> None:
    # an archive of years may come at once
    @task(outlets=[RUNS], **SPARK | {"execution_timeout": timedelta(hours=6)})
    def read_runs(*, outlet_events: Any) -> None:
        from dags.skipping import skipped_when_idle
        from twin.app import pipeline
        from twin.core.settings import Settings

        with skipped_when_idle():
            outlet_events[RUNS].extra = pipeline.ingest_runs(Settings.from_environment())

    read_runs()


ingest_runs()
