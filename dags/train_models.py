"""The throughput model, trained and registered."""

from datetime import timedelta
from typing import Any

from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable, Param, dag, task

from dags.assets import MODEL, TRAINING_SET
from dags.rules import DAG_RULES

DOC = """
Fits the model on the training set, examines it on configurations it has not seen, registers it in MLflow as
`throughput` with the alias `challenger`, and moves `champion` to it if the expectations of the training set
passed, no source says something else than before, and it is not worse than the champion where both can be
compared. Runs when the training set changed, at most once in `TWIN_TRAIN_EVERY_H` hours (24), and looks
daily whether a change still waits or a week has passed. Same data and same code: nothing is registered. A
run by hand trains at once.

**When it fails:** the champion of before still serves. The log holds the error of the training or the
registry. **When nothing is promoted:** `twin models` and the log tell why; `twin models promote` decides
otherwise.
"""


@dag(
    dag_id="train_models",
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("0 3 * * *", timezone="UTC"), assets=[TRAINING_SET]
    ),
    params={
        "where": Param(None, type=["null", "string"], description="SQL: learn from these measurements only"),
        "tune": Param(False, type="boolean", description="Search hyper-parameters first; takes an hour"),
    },
    doc_md=DOC,
    **DAG_RULES,
)
def train_models() -> None:
    @task
    def is_it_time(*, dag_run: Any) -> str:
        from dags.skipping import skipped_when_idle
        from twin.app.pipeline import training_due
        from twin.core.settings import Settings

        if dag_run.run_type == "manual":
            return "somebody asked for it"
        with skipped_when_idle():
            return training_due(Settings.from_environment())

    @task(outlets=[MODEL], execution_timeout=timedelta(hours=6))
    def train_and_register(*, outlet_events: Any, params: dict[str, Any]) -> None:
        from dags.skipping import skipped_when_idle
        from twin.app import pipeline
        from twin.core.settings import Settings

        with skipped_when_idle():
            outlet_events[MODEL].extra = pipeline.train_models(
                Settings.from_environment(), params["where"], params["tune"]
            )

    is_it_time() >> train_and_register()


train_models()
