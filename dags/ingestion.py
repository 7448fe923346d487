"""The tasks of a DAG that takes files: find them, read each on its own, write what they gave together."""

from dataclasses import asdict
from typing import Any

from airflow.sdk import TriggerRule, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException

from dags.assets import FIGURES
from dags.rules import SPARK


@task
def find(kind: Any) -> list[dict[str, Any]]:
    from twin.app.ingesting import files_to_read
    from twin.core.settings import Settings

    return [asdict(found) for found in files_to_read(Settings.from_environment(), kind)]


@task(map_index_template="{{ file_name }}")
def read(found: dict[str, Any]) -> dict[str, Any]:
    """Without Spark, so that many go at once; one that is refused fails alone and is not tried again."""
    from twin.app.ingesting import Found, read_and_stage
    from twin.core.settings import Settings
    from twin.sources.documents import Refused

    get_current_context()["file_name"] = found["file"].rpartition("/")[2]
    try:
        return read_and_stage(Settings.from_environment(), Found(**found))
    except Refused as error:
        raise AirflowFailException(f"refused {found['file']}: {error}") from error


@task(outlets=[FIGURES], trigger_rule=TriggerRule.ALL_DONE, priority_weight=10, **SPARK)
def write(
    found: list[dict[str, Any]] | None, staged: Any, *, outlet_events: Any, params: dict[str, Any]
) -> None:
    """After all were read, whatever became of each; before anything that is made of figures."""
    from dags.skipping import skipped_when_idle
    from twin.app.pipeline import ingest_files
    from twin.core.settings import Settings

    if found is None:
        raise AirflowFailException("the inbox could not be looked at; see the log of the task `find`")
    places = [one["staged"] for one in staged or ()]
    with skipped_when_idle():
        outlet_events[FIGURES].extra = ingest_files(
            Settings.from_environment(), places, library=params.get("library", False)
        )
