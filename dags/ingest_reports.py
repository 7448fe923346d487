"""Published reports into bronze."""

from typing import Any

from airflow.sdk import dag, task

from dags.assets import FIGURES

DOC = """
Puts the figures of every known report into `bronze/figures`. Reads a report's document where
`TWIN_REPORTS_DIR` has it, else the figures that ship with the platform.

**When it fails:** the log names the document and the table or column that was not as declared. Nothing was
written: mend the declaration or remove the document, then clear the task.
"""


@dag(
    dag_id="ingest_reports", schedule=None, catchup=False, max_active_runs=1, doc_md=DOC, tags=["brokertwin"]
)
def ingest_reports() -> None:
    @task(outlets=[FIGURES])
    def figures_into_bronze(*, outlet_events: Any) -> None:
        from twin.app import pipeline
        from twin.core.settings import Settings

        outlet_events[FIGURES].extra = pipeline.ingest_reports(Settings.from_environment())

    figures_into_bronze()


ingest_reports()
