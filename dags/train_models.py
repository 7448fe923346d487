"""The throughput model, trained and registered."""

from typing import Any

from airflow.sdk import dag, task

from dags.assets import MODEL, TRAINING_SET

DOC = """
Fits the model on the training set, examines it on configurations it has not seen, registers it in MLflow
as `throughput` with the alias `challenger`, and moves `champion` to it if the expectations of the
training set passed and it is not worse than the champion where both can be compared. Same data and same
code: nothing is registered.

**When it fails:** the champion of before still serves. The log holds the error of the training or the
registry. **When nothing is promoted:** `twin models` tells why.
"""


@dag(
    dag_id="train_models",
    schedule=[TRAINING_SET],
    catchup=False,
    max_active_runs=1,
    doc_md=DOC,
    tags=["brokertwin"],
)
def train_models() -> None:
    @task(outlets=[MODEL])
    def train_and_register(*, outlet_events: Any) -> None:
        from twin.app import pipeline
        from twin.core.settings import Settings

        outlet_events[MODEL].extra = pipeline.train_models(Settings.from_environment())

    train_and_register()


train_models()
