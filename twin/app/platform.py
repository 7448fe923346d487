"""The platform that stays up, as other processes see it: its state in a file, bringing it up, taking it down.

The supervisor writes the file; a process counts as ours only with the time at which it was created.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Literal

import psutil
from pydantic import BaseModel, ConfigDict

from twin.app.services import ProcessId, end_families, logs_folder, service_environment
from twin.core.settings import Settings

State = Literal["starting", "healthy", "unhealthy", "restarting", "waiting", "failed", "ended"]
_WELL: tuple[State, ...] = ("healthy", "waiting")


class PlatformFailed(Exception):
    """The platform did not come up."""


class ServiceState(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    state: State
    url: str | None = None
    process: ProcessId | None = None
    since: datetime | None = None
    note: str = ""

    def seen_now(self) -> ServiceState:
        """The supervisor looks every second; a process that is gone is gone at once."""
        if self.process is not None and not self.process.alive:
            return self.model_copy(update={"state": "ended"})
        return self


class PlatformState(BaseModel):
    model_config = ConfigDict(frozen=True)

    supervisor: ProcessId
    started_at: datetime
    services: tuple[ServiceState, ...] = ()

    @property
    def is_up(self) -> bool:
        return self.supervisor.alive

    @property
    def well(self) -> bool:
        return self.is_up and bool(self.services) and all(one.state in _WELL for one in self.services)

    def write(self, settings: Settings) -> None:
        path = _file(settings)
        settings.folder()
        new = path.with_suffix(".new")
        new.write_text(self.model_dump_json(indent=1))
        new.replace(path)


def read_state(settings: Settings) -> PlatformState | None:
    """None where nothing was brought up, or all of it was taken down again."""
    try:
        state = PlatformState.model_validate_json(_file(settings).read_text())
    except FileNotFoundError:
        return None
    return state.model_copy(update={"services": tuple(one.seen_now() for one in state.services)})


def forget_state(settings: Settings) -> None:
    _file(settings).unlink(missing_ok=True)


def bring_up(
    settings: Settings, told: Callable[[PlatformState], None], timeout_s: float = 240
) -> PlatformState:
    """Start a supervisor that outlives this process and wait until all is well. `told` hears how far."""
    log = logs_folder(settings) / "supervisor.log"
    with log.open("ab") as out:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "twin.app.supervisor"],
            env=service_environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    deadline = time.monotonic() + timeout_s
    while True:
        state = read_state(settings)
        if supervisor.poll() is not None:
            *_, reason = ["it said nothing", *log.read_text().splitlines()]
            raise PlatformFailed(f"the supervisor ended: {reason}; see {log}")
        if state is not None and state.supervisor.pid == supervisor.pid:
            told(state)
            if state.well:
                return state
        if time.monotonic() > deadline:
            raise PlatformFailed(f"not healthy after {timeout_s:.0f} s; see `twin status` and {log.parent}")
        time.sleep(0.5)


def take_down(settings: Settings, patience_s: float = 90) -> bool:
    """False if nothing was up."""
    state = read_state(settings)
    if state is None:
        return False
    with suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
        if state.is_up:
            os.kill(state.supervisor.pid, signal.SIGTERM)
            psutil.Process(state.supervisor.pid).wait(patience_s)
    if state.is_up:
        os.kill(state.supervisor.pid, signal.SIGKILL)
    end_orphans(settings)
    return True


def end_orphans(settings: Settings) -> None:
    """What a supervisor left behind that was killed."""
    state = read_state(settings)
    if state is not None and not state.is_up:
        end_families(one.process for one in state.services if one.process is not None)
        forget_state(settings)


def _file(settings: Settings) -> Path:
    return settings.home / "platform.json"
