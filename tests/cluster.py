"""A Spark cluster on this machine, from the installed PySpark alone: a master and two workers of a core each.

A job for it runs in a process of its own, because a test process has a local session already and only one can
live in a process. Every process leads a session, which is how all that it started is found; what a task sees
as its session is therefore the worker that runs it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from features.java import java_home
from twin.app.services import Running, Service, kill_family, require_alive, start

T = TypeVar("T")

_WORKERS = 2
_PATIENCE_S = 90.0
# start-up counts, not peak speed
_SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
# a user's spark-defaults.conf
_DEFAULTS = f"""spark.ui.enabled false
spark.executor.memory 640m
spark.sql.shuffle.partitions 2
spark.driver.extraJavaOptions {_SMALL}
spark.executor.extraJavaOptions {_SMALL}
"""
# settings of the test process that must not reach others
_OWN = ("SPARK", "PYSPARK", "TWIN", "AIRFLOW", "MLFLOW_TRACKING_URI")
_ANY_PORT = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")


class NoJava(Exception):
    """Java cannot be started here."""


@dataclass
class SparkCluster:
    """Where its master is (`url`), what it is made of, and the processes that use it."""

    folder: Path
    environment: dict[str, str]
    url: str = ""
    master: Running | None = None
    workers: list[Running] = field(default_factory=list)
    drivers: list[Running] = field(default_factory=list)

    def complete(self) -> None:
        """As many workers as there should be, all known to the master: a killed one is replaced."""
        if self.master is None:
            self.master = self._start("master", "master.Master", *_ANY_PORT)
            self.url = logged(self.master, r"Starting Spark master at (spark://\S+)")[1]
        while len(self.workers) < _WORKERS:
            name = f"worker-{len([*self.folder.glob('worker-*.log')])}"
            sized = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / "work"))
            self.workers.append(self._start(name, "worker.Worker", *_ANY_PORT, *sized, self.url))
        for one in self.workers:
            logged(one, "Successfully registered with master")

    def kill(self, worker: Running) -> None:
        """The worker, its executors and their Python processes, without a word of warning."""
        self.workers.remove(worker)
        _kill(worker)

    def drive(self, home: Path, *arguments: object) -> Running:
        """Python with these arguments, in a process whose Spark sessions are on the cluster."""
        name = f"driver-{len(self.drivers)}"
        own = {"TWIN_HOME": str(home), "TWIN_SPARK_MASTER": self.url}
        command = (sys.executable, *map(str, arguments))
        driver = start(Service(name, command, self.environment | own, self.folder / f"{name}.log"))
        self.drivers.append(driver)
        return driver

    def end(self) -> None:
        for one in (*self.drivers, *self.workers, *filter(None, [self.master])):
            _kill(one)

    def _start(self, name: str, main: str, *arguments: str) -> Running:
        import pyspark

        home = Path(pyspark.__file__).parent
        own = {
            "SPARK_HOME": str(home),
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _SMALL,
            # a port that is always the same and that nobody needs
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        }
        command = (str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", *arguments)
        return start(Service(name, command, self.environment | own, self.folder / f"{name}.log"))


@contextmanager
def running_cluster(folder: Path) -> Iterator[SparkCluster]:
    """Logs, settings and scratch files stay in the folder; no process outlives the block."""
    cluster = SparkCluster(folder, _environment(folder))
    try:
        cluster.complete()
        yield cluster
    finally:
        cluster.end()


def finished(driver: Running, timeout_s: float = _PATIENCE_S) -> str:
    """What a driver printed, once it has ended well."""
    code = driver.process.wait(timeout_s)
    printed = driver.service.log.read_text()
    assert code == 0, printed
    return printed


def logged(running: Running, pattern: str) -> re.Match[str]:
    return waited(lambda: re.search(pattern, running.service.log.read_text()), running)


def waited(look: Callable[[], T | None], *running: Running, timeout_s: float = _PATIENCE_S) -> T:
    """What is looked for, as soon as it is there, and while those that bring it about run."""
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        require_alive(running)
        assert time.monotonic() < deadline, [one.service.log.read_text() for one in running]
        time.sleep(0.1)
    return found


def _kill(one: Running) -> None:
    kill_family(one.id)
    one.process.wait()


def _environment(folder: Path) -> dict[str, str]:
    java = java_home(folder)
    try:
        subprocess.run([f"{java}/bin/java", "-version"], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise NoJava(f"Java cannot start: {error}") from error
    settings = folder / "conf"
    settings.mkdir()
    (settings / "spark-defaults.conf").write_text(_DEFAULTS)
    return {name: value for name, value in os.environ.items() if not name.startswith(_OWN)} | {
        "JAVA_HOME": java,
        "SPARK_CONF_DIR": str(settings),
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
    }
