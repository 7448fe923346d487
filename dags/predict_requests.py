"""Waiting batch requests, answered."""

from typing import Any

from airflow.sdk import dag, task

from dags.assets import ANSWERS, MODEL, WAITING_REQUESTS
from dags.rules import DAG_RULES, SPARK

DOC = """
Answers every request file that waits in the `inbox` into `answers`; rows that were not understood go to a
file of rejects beside it. Runs within a minute after a file landed, and when there is a new model: requests
that came before the first one wait for it.

A file that cannot be read as a whole is in `refused` with the reason beside it; the others were answered.

**When it fails:** the log names the file and the error; what was not answered is still in the inbox. Clear
the task, or take the file out.
"""


@dag(
    dag_id="predict_requests",
    schedule=(WAITING_REQUESTS | MODEL),
    doc_md=DOC,
    **DAG_RULES,
)
def predict_requests() -> None:
    # large files are answered on Spark
    @task(outlets=[ANSWERS], **SPARK)
    def answer(*, outlet_events: Any) -> None:
        from dags.skipping import skipped_when_idle
        from twin.app import pipeline
        from twin.core.settings import Settings

        with skipped_when_idle():
            outlet_events[ANSWERS].extra = pipeline.answer_requests(Settings.from_environment())

    answer()


predict_requests()
