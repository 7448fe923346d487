"""Bronze validated into silver, silver into feature tables."""

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, task, timezone

from dags.assets import FIGURES, FINDINGS, RUNS, TRAINING_SET
from dags.rules import DAG_RULES, SPARK

DOC = """
Validates bronze figures and harness runs with Great Expectations, writes `measurements`, `quarantine` and
`findings`, then the feature tables and the training set. A bad figure never fails this DAG: it becomes a
finding, and one that is certainly wrong goes to `quarantine`; the log and the event of the asset
`findings` say how many of which source. What the laws of the training set say (no feature tells the
target, no group is split) stays with its version; one that breaks them is written, trained on and never
promoted. Skipped when figures and code are those of the last time.

**When it fails:** an expectation could not run or Spark died; the log says which. Tables hold either the
old or the new version, never half of one. Clear the task to try again.
"""
_INGESTING = ("ingest_reports", "ingest_harness", "ingest_runs")
_PATIENCE = timedelta(minutes=3)


@dag(
    dag_id="build_features",
    schedule=(FIGURES | RUNS),
    params={"anew": Param(False, type="boolean", description="Even if neither figures nor code changed")},
    doc_md=DOC,
    **DAG_RULES,
)
def build_features() -> None:
    @task.sensor(poke_interval=5, mode="poke")
    def let_ingestion_finish(*, ti: Any) -> bool:
        """What is being written now would have to be built right after: both together take one build."""
        writing = sum(ti.get_dr_count(dag_id=one, states=["queued", "running"]) for one in _INGESTING)
        return not writing or timezone.utcnow() - ti.start_date > _PATIENCE

    @task(outlets=[FINDINGS, TRAINING_SET], **SPARK)
    def validate_and_derive(*, outlet_events: Any, params: dict[str, Any]) -> None:
        from dags.skipping import skipped_when_idle
        from twin.app import pipeline
        from twin.core.settings import Settings

        with skipped_when_idle():
            told = pipeline.build_features(Settings.from_environment(), params["anew"])
        for asset in (FINDINGS, TRAINING_SET):
            outlet_events[asset].extra = told[asset.name]

    let_ingestion_finish() >> validate_and_derive()


build_features()
