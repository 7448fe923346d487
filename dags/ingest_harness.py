"""Tables of load harnesses into bronze."""

from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable, dag

from dags.assets import WAITING_HARNESS_FILES
from dags.ingestion import find, read, write
from dags.rules import DAG_RULES

DOC = """
Puts the figures of harness files that wait in the `inbox` into `bronze/figures`: `results.csv` of cphtestp
with a description of the machine beside it (`results.csv.yaml`), and CSV in the measurement schema. Runs
hourly and when a file lands.

**A red `read`** is a file that was refused: it is in `refused` with the reason beside it, the others were
taken. Mend it and drop it into the inbox again.

**When it fails:** `write` could not write; the log names the table and the cause. Nothing was half written
and the files are still in the inbox: remove the cause and clear the task, or wait for the next run.
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


ingest_harness()
