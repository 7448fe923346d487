"""What nothing needs any more goes, once a week."""

from airflow.sdk import CronTriggerTimetable, dag, task

from dags.rules import DAG_RULES

DOC = """
Lets old versions of tables go (`TWIN_KEEP_VERSIONS` of the newest stay, and all of `TWIN_KEEP_VERSION_DAYS`),
superseded models (`TWIN_KEEP_MODELS` stay, and champion, challenger and the champion before in any case),
samples older than `TWIN_KEEP_SAMPLES_MONTHS` where that is set, and folders that a kill left. The newest
version of a table is never touched. `twin tidy --dry-run` says what the next run would let go. The journal
has the counts.

**When it fails:** the log says why; what was let go before that is gone, the rest goes with the next run.
"""


@dag(
    dag_id="tidy_home",
    schedule=CronTriggerTimetable("0 4 * * 0", timezone="UTC"),
    doc_md=DOC,
    **DAG_RULES,
)
def tidy_home() -> None:
    @task
    def let_go() -> dict[str, int]:
        from twin.app import pipeline
        from twin.core.settings import Settings

        return pipeline.tidy_home(Settings.from_environment())

    let_go()


tidy_home()
