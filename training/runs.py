"""What every MLflow run of ours says of where it was made, so that one whose process was killed can be told
from one that goes on."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import psutil

from twin.core.run_id import run_id

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

# the last is what the journal names too
_HOST, _PROCESS, _RUN_ID = "brokertwin.host", "brokertwin.process", "brokertwin.run_id"


def run_tags() -> dict[str, str]:
    me = psutil.Process()
    return {
        _HOST: socket.gethostname(),
        _PROCESS: f"{me.pid} {me.create_time():.1f}",
        _RUN_ID: run_id(),
    }


def dead_runs(client: MlflowClient, experiment: str) -> list[str]:
    """Ids of runs that count as going on although their process of this machine is gone."""
    known = client.get_experiment_by_name(experiment)
    if known is None:
        return []
    going_on = client.search_runs([known.experiment_id], "attributes.status = 'RUNNING'")
    return [run.info.run_id for run in going_on if _is_dead(run.data.tags)]


def _is_dead(tags: dict[str, str]) -> bool:
    if tags.get(_HOST) != socket.gethostname() or _PROCESS not in tags:
        return False
    pid, created = tags[_PROCESS].split()
    try:
        process = psutil.Process(int(pid))
        # the clock that the time is reckoned from may be set meanwhile
        another = abs(process.create_time() - float(created)) >= 2
        return bool(another or process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
