"""What all DAGs have in common: when to try again, when to give up, who is told, how much Spark at a time."""

from datetime import timedelta
from typing import Any

from twin.app.notifying import FailureNotifier

# the pool has one slot where `twin up` or `make run` made it: a session takes all cores of one machine
SPARK: dict[str, Any] = {"pool": "spark", "execution_timeout": timedelta(hours=1)}

DAG_RULES: dict[str, Any] = {
    # a run does what there is to do, whatever its date: those of the past would find nothing left
    "catchup": False,
    "max_active_runs": 1,
    "tags": ["brokertwin"],
    "default_args": {
        # the first delay is Airflow's own setting, default_task_retry_delay
        "retries": 3,
        "retry_exponential_backoff": True,
        "max_retry_delay": timedelta(minutes=10),
        "execution_timeout": timedelta(minutes=10),
        "on_failure_callback": [FailureNotifier()],
    },
}
