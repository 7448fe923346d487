"""Waiting batch requests, answered."""

from typing import Any

from airflow.sdk import dag, task

from dags.assets import ANSWERS, MODEL

DOC = """
Answers every file in the `requests` folder of the home into `answers`; rows that were not understood go to
a file of rejects beside it.

**When it fails:** a whole file could not be read; the log names it. Take it out of the
folder and clear the task.
"""


@dag(
    dag_id="predict_requests",
    schedule=[MODEL],
    catchup=False,
    max_active_runs=1,
    doc_md=DOC,
    tags=["brokertwin"],
)
def predict_requests() -> None:
    @task(outlets=[ANSWERS])
    def answer_requests(*, outlet_events: Any) -> None:
        from twin.app import pipeline
        from twin.core.settings import Settings

        outlet_events[ANSWERS].extra = pipeline.answer_requests(Settings.from_environment())

    answer_requests()


predict_requests()
