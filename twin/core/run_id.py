"""What ties together all that one piece of work leaves: lines of the journal, runs in MLflow."""

from __future__ import annotations

import os
import uuid
from functools import cache


def run_id() -> str:
    """Airflow's own inside a task; made up once for any other process."""
    return os.environ.get("AIRFLOW_CTX_DAG_RUN_ID") or _made_up()


@cache
def _made_up() -> str:
    return f"twin__{uuid.uuid4().hex[:12]}"
