"""Results of load harnesses into bronze."""

from typing import Any

from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable, dag, task

from dags.assets import RUNS, WAITING_HARNESS_FILES
from dags.ingestion import find, read, write
from dags.rules import DAG_RULES, SPARK

DOC = """
Takes harness files that wait in the `inbox`. Tables go into `bronze/figures`: `results.csv` of cphtestp with
a description of the machine beside it (`results.csv.yaml`), and CSV in the measurement schema. Files with
intervals of runs go all at once, on Spark, into `bronze/samples` and `silver/runs`. Runs hourly and when a
file lands.

**A red `read`** is a file that was refused: it is in `refused` with the reason beside it, the others were
taken. Mend it and drop it into the inbox again.

**A file of runs that was refused** is there too; `read_runs` and the others go on.

**When it fails:** `write` or `read_runs` could not write; the log names the table and the cause.
Nothing was half written and the files are still in the inbox: remove the cause and clear the task, or wait
for the next run.
"""


@dag(
    dag_id="ingest_harness",
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("30 * * * *", timezone="UTC"), assets=[WAITING_HARNESS_FILES]
    ),
    doc_md=DOC,
    **DAG_RULES,
)
def ingest_harness() -> None:
    found = find("harness")
    write(found, read.expand(found=found))

    @task(outlets=[RUNS], **SPARK)
    def read_runs(*, outlet_events: Any) -> None:
        from dags.skipping import skipped_when_idle
        from twin.app import pipeline
        from twin.core.settings import Settings

        with skipped_when_idle():
            outlet_events[RUNS].extra = pipeline.ingest_runs(Settings.from_environment())

    read_runs()


ingest_harness()
