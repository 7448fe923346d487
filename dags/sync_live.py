"""Live brokers probed at a fixed period, the twin kept in step with them."""

from datetime import timedelta
from typing import Any

from airflow.sdk import CronTriggerTimetable, Param, dag, task

from dags.assets import MODEL
from dags.rules import DAG_RULES
from twin.core.settings import Settings

DOC = """
Measures a few configurations of each broker in `TWIN_SYNC_BROKERS` (names or name=address, with commas
between), where the champion is least sure, and compares them with what it predicts. When the two part it says
since when and by how much, and registers a new calibration: as the champion if `TWIN_SYNC_POLICY` is `auto`
and the newest probes agree with it, else as a version that waits for `twin models promote`. Runs at
`TWIN_SYNC_CRON` (hourly). The probes land in the inbox like any other runs. Skipped where no broker is named,
and where a period leaves the model as it is.

**When it fails:** the broker did not answer, or there is no champion yet; the log says which. Nothing was
recorded, and the next period goes on. **When it diverges:** the log and `twin sync` tell which demand moved;
look at the broker first, the calibration second.
"""


@dag(
    dag_id="sync_live",
    schedule=CronTriggerTimetable(Settings.from_environment().sync_cron, timezone="UTC"),
    params={
        "probes": Param(3, type="integer", minimum=2, maximum=20, description="Configurations to measure")
    },
    doc_md=DOC,
    **DAG_RULES,
)
def sync_live() -> None:
    @task(outlets=[MODEL], execution_timeout=timedelta(minutes=15))
    def probe(*, outlet_events: Any, params: dict[str, Any]) -> None:
        from dags.skipping import skipped_when_idle
        from twin.app import pipeline

        with skipped_when_idle():
            outlet_events[MODEL].extra = pipeline.sync_live(Settings.from_environment(), params["probes"])

    probe()


sync_live()
