"""Published reports into bronze."""

from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable, Param, dag

from dags.assets import WAITING_DOCUMENTS
from dags.ingestion import find, read, write
from dags.rules import DAG_RULES

DOC = """
Puts the figures of reports into `bronze/figures`: documents that wait in the `inbox`, those of the folder
`TWIN_REPORTS_DIR`, and the figures that ship with the platform for every known report without a document. A
document that came through the inbox is never replaced by the other two. Runs daily and when a document
lands.

**A red `read`** is a document that was refused: it is in `refused` with the reason beside it, the others were
taken. Mend it (or its declaration) and drop it into the inbox again.

**When it fails:** `write` could not write; the log names the table and the cause. Nothing was half written
and the files are still in the inbox: remove the cause and clear the task, or wait for the next run.
"""


@dag(
    dag_id="ingest_reports",
    schedule=AssetOrTimeSchedule(
        # a new platform does not wait for the night to know the reports that ship
        timetable=CronTriggerTimetable("0 1 * * *", timezone="UTC", run_immediately=True),
        assets=[WAITING_DOCUMENTS],
    ),
    params={"library": Param(True, type="boolean", description="Take the reports that ship as well")},
    doc_md=DOC,
    **DAG_RULES,
)
def ingest_reports() -> None:
    found = find("report")
    write(found, read.expand(found=found))


ingest_reports()
