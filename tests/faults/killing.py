"""kill -9 at moments that a seed draws: some at a time, some right after a table was committed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from twin.app.services import ProcessId, family, kill_family

Victim = Literal["all", "python", "java"]
_OWN = ("AIRFLOW", "MLFLOW_TRACKING_URI", "TWIN_")
_HANGS_AFTER_S = 300.0
_LOOK_EVERY_S = 0.002


class Hang(Exception):
    """A step that did not end."""


@dataclass(frozen=True)
class Moment:
    """When to kill whom: after so many commits if there are as many, at the latest after so many seconds."""

    victim: Victim
    after_s: float
    after_commits: int | None

    @classmethod
    def drawn(cls, draw: random.Random, usual_s: float, commits: int) -> Moment:
        victim: Victim = draw.choices(("all", "python", "java"), (2, 1, 1))[0]
        after_s = draw.uniform(0.05, 0.8) * usual_s
        after_commits = draw.randint(1, commits) if commits and draw.random() < 0.5 else None
        return cls(victim, 3 * usual_s if after_commits else after_s, after_commits)


@dataclass(frozen=True)
class Ended:
    """How a step ended: by itself with a code, or killed after so many commits."""

    killed: bool
    code: int | None
    commits: int
    seconds: float
    printed: str


def run_step(step: str, home: Path, log: Path, moment: Moment | None = None) -> Ended:
    """The step in a session of its own; all that it started is gone when this returns."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
    environment = inherited | {"TWIN_HOME": str(home)}
    command = [sys.executable, str(Path(__file__).with_name("step.py")), step]
    before, began = commits_in(home), time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
    leader = ProcessId.of(process.pid)
    killed = False
    try:
        while process.poll() is None:
            seconds, commits = time.monotonic() - began, commits_in(home) - before
            if moment and not killed and _has_come(moment, seconds, commits):
                killed = _kill(moment.victim, leader)
            if seconds > _HANGS_AFTER_S:
                raise Hang(f"{step} has not ended after {_HANGS_AFTER_S:.0f} s; {log}")
            time.sleep(_LOOK_EVERY_S)
    finally:
        kill_family(leader)
        code = process.wait()
    seconds, commits = time.monotonic() - began, commits_in(home) - before
    return Ended(killed, code, commits, seconds, log.read_text(errors="replace"))


def commits_in(home: Path) -> int:
    """Log entries of all tables, and versions of models."""
    tables = sum(1 for _ in home.glob("lake/*/*/_delta_log/*.json"))
    return tables + sum(1 for _ in home.glob("mlflow/artifacts/models/*/artifacts/MLmodel"))


def _has_come(moment: Moment, seconds: float, commits: int) -> bool:
    if moment.after_commits is not None and commits >= moment.after_commits:
        return True
    return seconds >= moment.after_s


def _kill(victim: Victim, leader: ProcessId) -> bool:
    """False as long as there is nobody to kill yet."""
    if victim == "all":
        kill_family(leader)
        return True
    for one in family(leader):
        with suppress(psutil.Error):
            if (one.name() == "java") == (victim == "java") and (victim == "java" or one.pid == leader.pid):
                one.kill()
                return True
    return False
