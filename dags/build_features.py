"""Bronze validated into silver, silver into feature tables."""

from typing import Any

from airflow.sdk import dag, task

from dags.assets import FIGURES, TRAINING_SET

DOC = """
Validates bronze figures with Great Expectations, writes `measurements`, `quarantine` and `findings`, then
the feature tables and the training set. A bad figure never fails this DAG: it becomes a finding. What the
laws of the training set say (no feature tells the target, no group is split) stays with its version; one
that breaks them is written, trained on and never promoted.

**When it fails:** an expectation could not run or Spark died; the log says which. Tables hold either the
old or the new version, never half of one. Clear the task to try again.
"""


@dag(
    dag_id="build_features",
    schedule=[FIGURES],
    catchup=False,
    max_active_runs=1,
    doc_md=DOC,
    tags=["brokertwin"],
)
def build_features() -> None:
    @task(outlets=[TRAINING_SET])
    def validate_and_derive(*, outlet_events: Any) -> None:
        from twin.app import pipeline
        from twin.core.settings import Settings

        outlet_events[TRAINING_SET].extra = pipeline.build_features(Settings.from_environment())

    validate_and_derive()


build_features()
