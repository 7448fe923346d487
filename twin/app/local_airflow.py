"""Airflow on this machine: its settings, its processes, its REST interface.

Scheduler, DAG processor, triggerer and API server run as children of ours, on loopback, without the log
servers that `airflow standalone` opens on every interface. They end when the `with` block ends, however it
ends.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from filelock import FileLock, Timeout

from twin.app.services import (
    Running,
    Service,
    ServiceFailed,
    end,
    free_port,
    logs_folder,
    require_alive,
    service_environment,
    start,
    wait_until_healthy,
)
from twin.core.kept import kept_secret
from twin.core.settings import PROJECT, Settings

USER = "admin"
_API_SERVER = "api-server"
# one Spark session at a time: each takes as many cores as there are
_POOLS = {"spark": 1}
_TRIES, _PAUSE_S = 3, 1.0


class AirflowFailed(Exception):
    """Airflow did not start, or ended early."""


class Airflow:
    """A running Airflow, spoken to over REST."""

    def __init__(self, url: str, token: str, running: Sequence[Running], logs: Path) -> None:
        self.url = url
        self.logs = logs
        self._running = running
        self._http = httpx.Client(
            base_url=f"{url}/api/v2",
            headers={"Authorization": f"Bearer {token}"},
            timeout=30,
            trust_env=False,
        )

    def wait_for_dags(self, dag_ids: tuple[str, ...], timeout_s: float = 120) -> None:
        deadline = time.monotonic() + timeout_s
        while True:
            known = {dag["dag_id"] for dag in self._get("/dags", limit=100)["dags"]}
            if known.issuperset(dag_ids):
                return
            errors = self._get("/importErrors")["import_errors"]
            if errors:
                raise AirflowFailed(f"{errors[0]['filename']}: {errors[0]['stack_trace']}")
            if time.monotonic() > deadline:
                raise AirflowFailed(f"no DAG {', '.join(set(dag_ids) - known)} after {timeout_s:.0f} s")
            time.sleep(1)

    def trigger(self, dag_id: str, conf: dict[str, Any] | None = None) -> str:
        """Start a run; returns its id. It is ours, so that asking again starts no second one."""
        run_id = f"manual__{datetime.now(UTC).isoformat()}"
        asked = {"dag_run_id": run_id, "logical_date": None, "conf": conf or {}}
        self._ask("POST", f"/dags/{dag_id}/dagRuns", json=asked)
        return run_id

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """The latest hundred, newest first."""
        runs: list[dict[str, Any]] = self._get(f"/dags/{dag_id}/dagRuns", limit=100, order_by="-run_after")[
            "dag_runs"
        ]
        return runs

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        run: dict[str, Any] = self._get(f"/dags/{dag_id}/dagRuns/{quote(run_id)}")
        return run

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Every task of a run with its state, try and times; a mapped one once for each of its pieces."""
        return self._all(f"/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances", "task_instances")

    def asset_events(self, **wanted: Any) -> list[dict[str, Any]]:
        """Oldest first, with the extra that the task gave them; `wanted` is what Airflow filters by:
        source_dag_id, source_run_id, source_task_id, name_pattern."""
        return self._all("/assets/events", "asset_events", **wanted)

    def log(self, dag_id: str, run_id: str, task_id: str, try_number: int = 1, map_index: int = -1) -> str:
        """What one try of a task wrote, a line for each event."""
        path = f"/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}/logs/{try_number}"
        content = self._get(path, map_index=map_index, full_content=True)["content"]
        return "\n".join(one["event"] if isinstance(one, dict) else one for one in content)

    def ensure_pools(self) -> None:
        """One that is there already is left as its owner made it."""
        known = {pool["name"] for pool in self._all("/pools", "pools")}
        for name, slots in _POOLS.items():
            if name not in known:
                self._ask("POST", "/pools", json={"name": name, "slots": slots})

    def _all(self, path: str, key: str, **params: Any) -> list[dict[str, Any]]:
        """All pages: Airflow gives out a hundred at a time."""
        found: list[dict[str, Any]] = []
        while True:
            page = self._get(path, limit=100, offset=len(found), **params)
            found += page[key]
            if not page[key] or len(found) >= page["total_entries"]:
                return found

    def _get(self, path: str, **params: Any) -> Any:
        return self._ask("GET", path, params=params).json()

    def _ask(self, method: str, path: str, **content: Any) -> httpx.Response:
        """Asked again after a timeout or an error of the server: its processes share one embedded database,
        where one may wait for another in vain. A conflict is what an answer that was lost has made."""
        for last in (*[False] * _TRIES, True):
            require_alive(self._running)
            try:
                answer = self._http.request(method, path, **content)
                if last or answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
                    break
            except httpx.TimeoutException:
                if last:
                    raise
            time.sleep(_PAUSE_S)
        if not (method == "POST" and answer.status_code == httpx.codes.CONFLICT):
            answer.raise_for_status()
        return answer


@contextmanager
def running_airflow(settings: Settings, port: int | None = None) -> Iterator[Airflow]:
    """Airflow up and healthy for as long as the block lasts."""
    port = port or free_port(0)
    with only_airflow(settings):
        prepare_database(settings, port)
        running: list[Running] = []
        try:
            for service in airflow_services(settings, port):
                running.append(start(service))
            wait_until_healthy(running)
            airflow = connected(settings, address(port), running)
            airflow.ensure_pools()
            yield airflow
        except ServiceFailed as error:
            raise AirflowFailed(str(error)) from error
        finally:
            end(running)


@contextmanager
def only_airflow(settings: Settings) -> Iterator[None]:
    """Two schedulers on one embedded database would get in each other's way. The lock goes with the process
    that holds it, however that ends."""
    lock = FileLock(_home(settings) / "running.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise AirflowFailed(
            f"Airflow is running on {settings.home} already: end the platform with `twin down` first, "
            "or let the other `twin run` finish"
        ) from None
    try:
        yield
    finally:
        lock.release()


def airflow_services(settings: Settings, port: int) -> list[Service]:
    """Airflow's processes in the order in which they start."""
    password(settings)  # or Airflow would make one up and print it into its log
    environment = airflow_environment(settings, port)
    components = _components(port, with_worker="Celery" in environment.get("AIRFLOW__CORE__EXECUTOR", ""))
    return [
        Service(
            name=name,
            command=(sys.executable, "-m", "airflow", *arguments),
            environment=environment,
            log=logs_folder(settings) / f"{name}.log",
            url=address(port) if name == _API_SERVER else None,
            health_url=f"{address(port)}/api/v2/monitor/health" if part else None,
            health_part=part,
            # a task that is stopped still tells it so
            ends_last=name == _API_SERVER,
        )
        for name, (arguments, part) in components.items()
    ]


def _components(port: int, with_worker: bool) -> dict[str, tuple[tuple[str, ...], str | None]]:
    """What to start, and which part of Airflow's health tells of it. None opens its log server, which would
    listen on every interface: all of them share this machine's folder of logs."""
    components: dict[str, tuple[tuple[str, ...], str | None]] = {
        _API_SERVER: (("api-server", "--host", "127.0.0.1", "--port", str(port)), "metadatabase"),
        "scheduler": (("scheduler", "--skip-serve-logs"), "scheduler"),
        "dag-processor": (("dag-processor",), "dag_processor"),
        "triggerer": (("triggerer", "--skip-serve-logs"), "triggerer"),
    }
    if with_worker:
        # tells its health to nobody
        components["worker"] = (("celery", "worker", "--skip-serve-logs"), None)
    return components


def prepare_database(settings: Settings, port: int) -> None:
    log = logs_folder(settings) / "airflow-migrate.log"
    with log.open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"],
            env=airflow_environment(settings, port),
            stdout=out,
            stderr=out,
            start_new_session=True,  # Ctrl-C is for us, not for it
            check=False,
        )
    if done.returncode:
        raise AirflowFailed(f"the database could not be prepared; see {log}")


def address(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def connected(settings: Settings, url: str, running: Sequence[Running] = ()) -> Airflow:
    """With `running`, a process that has ended is told as the reason of a missing answer."""
    return Airflow(url, _token(url, password(settings)), running, logs_folder(settings))


def airflow_environment(settings: Settings, port: int) -> dict[str, str]:
    """Airflow's settings for one machine; variables that are set already win."""
    home = _home(settings)
    logs = logs_folder(settings)
    defaults = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        # the first of a task's delays; each next one is longer
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "20",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords_file(settings)),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address(port)}/execution/",
        # Who writes waits for the others: the default of five seconds is too short on a busy machine. The API
        # server may wait for itself, and answers nobody meanwhile: tasks ask it five times in half a minute.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}?timeout=15",
        "AIRFLOW__API__BASE_URL": address(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": _jwt_secret(home / "jwt_secret"),
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
        # a task or a scheduler that was killed is noticed in a minute, not in the default five
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "10",
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "30",
        "AIRFLOW__CELERY__WORKER_CONCURRENCY": "2",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(logs / "tasks"),
        "AIRFLOW__LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": str(logs / "dag-files"),
        # a line for every heartbeat of every task tells nobody anything
        "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "http.access=WARNING",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    return defaults | service_environment(settings)


def _token(url: str, secret: str) -> str:
    answer = httpx.post(
        f"{url}/auth/token", json={"username": USER, "password": secret}, timeout=30, trust_env=False
    )
    answer.raise_for_status()
    return str(answer.json()["access_token"])


def passwords_file(settings: Settings) -> Path:
    return _home(settings) / "passwords.json"


def password(settings: Settings) -> str:
    """Of the user that is there from the start; made up the first time."""
    new = json.dumps({USER: secrets.token_urlsafe(16)})
    return str(json.loads(kept_secret(passwords_file(settings), new))[USER])


def _jwt_secret(path: Path) -> str:
    """The same at every start: what a task was given before a restart is accepted after it. (The key that
    encrypts connections is kept too, by Airflow itself in its airflow.cfg.)"""
    return kept_secret(path, secrets.token_urlsafe(64))


def _home(settings: Settings) -> Path:
    return settings.folder("airflow")
