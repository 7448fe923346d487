"""What is wrong with the data, on a page; and every table beside what the twin foretold of it, in a book."""

from typing import Any

from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable, dag, task

from dags.assets import FINDINGS, MODEL, QUALITY_PAGE
from dags.rules import DAG_RULES

DOC = """
Writes the page in front of the Data Docs, `quality/index.html` in the home: figures, errors and warnings per
source, every finding with its line, and the files that were refused. Then the book, `book/index.html`: every
table as charts of what was measured and what was foretold without it, the exam, the findings, the cards of
model and data. Runs after each validation and each new model, and daily for files that were refused since.
The log and the event of the asset `quality_page` have the figures.

**When it fails:** the log says why; the pages of before are still there. Clear the task to try again.
"""


@dag(
    dag_id="quality_report",
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("0 2 * * *", timezone="UTC"), assets=FINDINGS | MODEL
    ),
    doc_md=DOC,
    **DAG_RULES,
)
def quality_report() -> None:
    @task(outlets=[QUALITY_PAGE])
    def write_page(*, outlet_events: Any) -> None:
        from dags.skipping import skipped_when_idle
        from twin.app import pipeline
        from twin.core.settings import Settings

        with skipped_when_idle():
            outlet_events[QUALITY_PAGE].extra = pipeline.quality_report(Settings.from_environment())

    write_page()


quality_report()
