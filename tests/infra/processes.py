"""The services of infra/compose.yaml as processes of this machine: their commands, environments, secrets,
health checks and order, with addresses on loopback ports and volumes in a folder.

What is not ours is not started from an image: PostgreSQL is the machine's own, Redis its program, and the
object store a folder.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from features.java import java_home
from twin.app.services import Running, Service, end, family, free_port, require_alive, start

from .compose import INFRA, PROJECT, is_ours, mounted_secret, ports_of, services

_REDIS_PORT = 6379
# settings of the test process that must not reach others
_OWN = ("SPARK", "PYSPARK", "TWIN", "AIRFLOW", "MLFLOW", "AWS", "PG", "JAVA")
_LOOK_AGAIN_S = 1.0
_LONGEST_CHECK_S = 60
_LOOPBACK = ("127.", "::1", "::ffff:127.")


@dataclass
class Topology:
    """`database` makes the names of databases this run's own; `secrets` are those of infra/new-secrets."""

    folder: Path
    secrets: Path
    database: str
    left_out: tuple[str, ...] = ("postgres", "volumes", "store", "store-bucket", "rabbitmq")
    running: dict[str, Running] = field(default_factory=dict)
    ports: dict[tuple[str, int], int] = field(default_factory=dict)
    started_in: list[str] = field(default_factory=list)
    peaks: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.services = {name: one for name, one in services().items() if name not in self.left_out}
        for name, service in self.services.items():
            for port in [_REDIS_PORT] if name == "redis" else ports_of(service):
                self.ports[name, port] = free_port(20_000, self.ports.values())
        self.ports["postgres", 5432] = 5432
        for name, service in self.services.items():
            self._hand_secrets(name, service)

    @property
    def lasting(self) -> list[str]:
        return [name for name in self.services if not self._ends(name)]

    def start_all(self, deadline: float) -> None:
        """Each as soon as what it depends on is there, as compose does it."""
        waiting = dict(self.services)
        while waiting:
            for name, service in list(waiting.items()):
                if all(self._met(*one) for one in service.get("depends_on", {}).items()):
                    self._start(name, waiting.pop(name))
            self.require_alive()
            assert time.monotonic() < deadline, f"{', '.join(waiting)} still wait for others"
            time.sleep(_LOOK_AGAIN_S)

    def wait_until_healthy(self, name: str, deadline: float) -> None:
        while not self.is_healthy(name):
            self.require_alive()
            assert time.monotonic() < deadline, f"{name} is not healthy; see {self.log(name)}"
            time.sleep(_LOOK_AGAIN_S)

    def is_healthy(self, name: str) -> bool:
        """What its own check says."""
        kind, *check = self.services[name]["healthcheck"]["test"]
        if name == "redis":  # its check asks the port of the image
            kind, check = "CMD", ["redis-cli", "-p", str(self.ports[name, _REDIS_PORT]), "ping"]
        assert kind == "CMD", check
        done = subprocess.run(
            [self._here(name, one) for one in check],
            env=self._environment(name),
            capture_output=True,
            timeout=_LONGEST_CHECK_S,
            check=False,
        )
        return done.returncode == 0

    def require_alive(self) -> None:
        require_alive(one for name, one in self.running.items() if not self._ends(name))
        for name, one in self.running.items():
            assert one.exit_code in (None, 0), f"{name} failed; see {self.log(name)}"

    def url(self, name: str, path: str = "") -> str:
        [port] = [here for (service, _), here in self.ports.items() if service == name]
        return f"http://127.0.0.1:{port}{path}"

    def volume(self, name: str) -> Path:
        folder = self.folder / "volumes" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def scratch(self, name: str) -> Path:
        """The /tmp of a container."""
        folder = self.folder / "tmp" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def environment_of(self, name: str, variable: str) -> str:
        return self._here(name, str(self.services[name]["environment"][variable]))

    def open_to_others(self) -> list[str]:
        """Every address beyond loopback on which something of ours listens."""
        return [
            f"{name} {connection.laddr.ip}:{connection.laddr.port}"
            for name, one in self.running.items()
            for process in family(one.id)
            for connection in _connections(process)
            if connection.status == psutil.CONN_LISTEN and not connection.laddr.ip.startswith(_LOOPBACK)
        ]

    def note_memory(self) -> None:
        """The most each has taken so far, shared pages shared out."""
        for name, one in self.running.items():
            taken = sum(_memory(process) for process in family(one.id))
            self.peaks[name] = max(taken, self.peaks.get(name, 0))

    def end(self) -> None:
        """The API server last: a task that is stopped still tells it so."""
        last = [one for name, one in self.running.items() if name == "airflow-api"]
        end(one for one in self.running.values() if one not in last)
        end(last)

    def _start(self, name: str, service: dict[str, Any]) -> None:
        command = [self._here(name, one) for one in service["command"]]
        if name == "redis":
            command += ["--bind", "127.0.0.1", "--port", str(self.ports[name, _REDIS_PORT])]
        if is_ours(service):
            command = [str(INFRA / "image" / "entrypoint"), *command]
        self.running[name] = start(Service(name, tuple(command), self._environment(name), self.log(name)))
        self.started_in.append(name)

    def _met(self, name: str, needed: dict[str, str]) -> bool:
        if name in self.left_out:
            return True
        if name not in self.running:
            return False
        if needed["condition"] == "service_completed_successfully":
            return self.running[name].exit_code == 0
        return self.is_healthy(name)

    def _ends(self, name: str) -> bool:
        return bool(self.services[name].get("healthcheck", {}).get("disable"))

    def _environment(self, name: str) -> dict[str, str]:
        service = self.services[name]
        inherited = {one: value for one, value in os.environ.items() if not one.startswith(_OWN)}
        programs = [INFRA / "image", Path(sys.executable).parent]
        told = {one: self._here(name, str(value)) for one, value in service.get("environment", {}).items()}
        return inherited | told | {
            "PATH": os.pathsep.join([*map(str, programs), os.environ.get("PATH", os.defpath)]),
            "HOME": str(self.scratch(name)),
            "SECRETS": str(self._secrets_of(name)),
            "JAVA_HOME": java_home(self.folder),
            # a container has an address of its own; here all share this one
            "SPARK_LOCAL_IP": "127.0.0.1",
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }  # fmt: skip

    def _here(self, name: str, text: str) -> str:
        """What a command, a variable or a secret says, in terms of this machine."""
        if text == "0.0.0.0" or text in [one.get("hostname") for one in self.services.values()]:
            return "127.0.0.1"
        if text.isdigit() and (name, int(text)) in self.ports:
            return str(self.ports[name, int(text)])
        if text == "s3://mlflow":
            return self.volume("store").as_uri()
        for (service, port), here in self.ports.items():
            text = re.sub(rf"(?<![\w-]){service}:{port}\b", f"127.0.0.1:{here}", text)
            if service == name:
                text = re.sub(rf"\b127\.0\.0\.1:{port}\b", f"127.0.0.1:{here}", text)
        owned = rf"//{self.database}_\1:\2@127.0.0.1:5432/{self.database}_\1"
        text = re.sub(r"//(\w+):(\w+)@127\.0\.0\.1:5432/\1", owned, text)
        folders = self._folders(name)
        pattern = "|".join(map(re.escape, sorted(folders, key=len, reverse=True)))
        return re.sub(rf"(?<![\w.])({pattern})(?![\w-])", lambda found: str(folders[found[1]]), text)

    def _folders(self, name: str) -> dict[str, Path]:
        mounted = [one.split(":")[:2] for one in self.services[name].get("volumes", ())]
        return {target: self.volume(volume) for volume, target in mounted} | {
            "/tmp": self.scratch(name),
            "/run/secrets": self._secrets_of(name),
            "/opt/brokertwin": PROJECT,
        }

    def _secrets_of(self, name: str) -> Path:
        return self.folder / "secrets" / name

    def _hand_secrets(self, name: str, service: dict[str, Any]) -> None:
        """Only those that the service asks for."""
        folder = self._secrets_of(name)
        folder.mkdir(parents=True)
        for secret in map(mounted_secret, service.get("secrets", ())):
            (folder / secret).write_text(self._here(name, (self.secrets / secret).read_text()))


def _connections(process: psutil.Process) -> list[Any]:
    try:
        return list(process.net_connections("tcp"))
    except psutil.Error:
        return []


def _memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except (psutil.Error, OSError):
        return 0
