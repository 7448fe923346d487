"""The throughput model, trained and registered."""

from typing import Any

from airflow.sdk import dag, task

from dags.assets import MODEL, TRAINING_SET

DOC = """
Trains the regressor on the training set, scores it on groups it has not seen, registers it in MLflow as
`throughput` and moves the alias `champion` to it. Same data and same code: nothing is registered.

**When it fails:** the champion of before still serves. The log holds the error of the
training or the registry.
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
