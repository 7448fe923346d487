"""Airflow on this machine: its settings, its processes, its REST interface.

Scheduler, DAG processor, triggerer and API server run as children of ours, on loopback, without the log
servers that `airflow standalone` opens on every interface. They end when the `with` block ends, however it
ends.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psutil

from twin.core.settings import PROJECT, Settings

_USER = "admin"
_COMPONENTS = {
    "api-server": ["api-server", "--host", "127.0.0.1"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
}
_PARTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")
# one Spark session at a time: each takes as many cores as there are
_POOLS = {"spark": 1}


class AirflowFailed(Exception):
    """Airflow did not start, or ended early."""


class Airflow:
    """A running Airflow, spoken to over REST."""

    def __init__(
        self, url: str, token: str, children: dict[str, subprocess.Popen[bytes]], logs: Path
    ) -> None:
        self.url = url
        self.logs = logs
        self._children = children
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
        """Start a run; returns its id."""
        answer = self._http.post(f"/dags/{dag_id}/dagRuns", json={"logical_date": None, "conf": conf or {}})
        answer.raise_for_status()
        return str(answer.json()["dag_run_id"])

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
                self._http.post("/pools", json={"name": name, "slots": slots}).raise_for_status()

    def _all(self, path: str, key: str, **params: Any) -> list[dict[str, Any]]:
        """All pages: Airflow gives out a hundred at a time."""
        found: list[dict[str, Any]] = []
        while True:
            page = self._get(path, limit=100, offset=len(found), **params)
            found += page[key]
            if not page[key] or len(found) >= page["total_entries"]:
                return found

    def _get(self, path: str, **params: Any) -> Any:
        for name, child in self._children.items():
            if child.poll() is not None:
                raise AirflowFailed(
                    f"the {name} ended with code {child.returncode}; see {self.logs / f'{name}.log'}"
                )
        answer = self._http.get(path, params=params)
        answer.raise_for_status()
        return answer.json()


@contextmanager
def running_airflow(settings: Settings, port: int | None = None) -> Iterator[Airflow]:
    """Airflow on its embedded database, up and healthy."""
    home = settings.home / "airflow"
    logs = home / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    port = port or _free_port()
    password = _password(home / "passwords.json")
    environment = airflow_environment(settings, port)
    _migrate(environment, logs)
    children: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, arguments in _COMPONENTS.items():
            extra = ["--port", str(port)] if name == "api-server" else []
            children[name] = _start([*arguments, *extra], environment, logs / f"{name}.log")
        url = f"http://127.0.0.1:{port}"
        _wait_until_healthy(url, children, logs)
        airflow = Airflow(url, _token(url, password), children, logs)
        airflow.ensure_pools()
        yield airflow
    finally:
        _end(children.values())


def airflow_environment(settings: Settings, port: int) -> dict[str, str]:
    """This process's environment with Airflow's own settings; variables that are set already win."""
    home = settings.home / "airflow"
    defaults = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{_USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": _jwt_secret(home / "jwt_secret"),
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
        # a task or a scheduler that was killed is noticed in a minute, not in the default five
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "10",
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "30",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs" / "tasks"),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "TWIN_HOME": str(settings.home),
        # tasks are forked workers: a proxy set for the outside must not catch calls to this machine
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }
    return defaults | dict(os.environ)


def _migrate(environment: dict[str, str], logs: Path) -> None:
    with (logs / "migrate.log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"],
            env=environment,
            stdout=log,
            stderr=log,
            check=False,
        )
    if done.returncode:
        raise AirflowFailed(f"the database could not be prepared; see {logs / 'migrate.log'}")


def _start(arguments: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "airflow", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,  # a group of its own: its workers end with it
        )


def _wait_until_healthy(
    url: str, children: dict[str, subprocess.Popen[bytes]], logs: Path, timeout_s: float = 120
) -> None:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        for name, child in children.items():
            if child.poll() is not None:
                raise AirflowFailed(
                    f"the {name} ended with code {child.returncode}; see {logs / f'{name}.log'}"
                )
        with suppress(httpx.HTTPError, json.JSONDecodeError):
            health = httpx.get(f"{url}/api/v2/monitor/health", timeout=5, trust_env=False).json()
            if all((health.get(part) or {}).get("status") == "healthy" for part in _PARTS):
                return
        time.sleep(0.5)
    raise AirflowFailed(f"Airflow was not healthy after {timeout_s:.0f} s; see {logs}")


def _token(url: str, password: str) -> str:
    answer = httpx.post(
        f"{url}/auth/token", json={"username": _USER, "password": password}, timeout=30, trust_env=False
    )
    answer.raise_for_status()
    return str(answer.json()["access_token"])


def _password(path: Path) -> str:
    return str(json.loads(_kept_secret(path, json.dumps({_USER: secrets.token_urlsafe(16)})))[_USER])


def _jwt_secret(path: Path) -> str:
    """The same at every start: what a task was given before a restart is accepted after it. (The key that
    encrypts connections is kept too, by Airflow itself in its airflow.cfg.)"""
    return _kept_secret(path, secrets.token_urlsafe(64))


def _kept_secret(path: Path, new: str) -> str:
    """From a file that only its owner can read; written once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(new)
    return path.read_text()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _end(children: Iterable[subprocess.Popen[bytes]], patience_s: float = 20) -> None:
    """The components and all that they started: a running task has a session of its own, and a JVM."""
    children = list(children)
    family = [one for child in children for one in _descendants(child.pid)]
    for child in children:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
    for one in family:
        with suppress(psutil.NoSuchProcess):
            one.terminate()
    psutil.wait_procs(family, timeout=patience_s)
    for one in family:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    for child in children:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
