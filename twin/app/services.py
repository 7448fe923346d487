"""A process that serves: how it is started, asked whether it is well, and ended with all that it started."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import httpx
import psutil

from twin.app.serving.places import asked_at, is_loopback, url_of
from twin.app.serving.tokens import tokens_if_needed
from twin.core.settings import Settings

_LARGEST_LOG_BYTES = 20_000_000


class ServiceFailed(Exception):
    """A service ended early or never became healthy."""


@dataclass(frozen=True)
class Service:
    """What to start. A service without a `health_url` is well while it lives."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    url: str | None = None
    health_url: str | None = None
    # several parts may tell their health at one address, as {"part": {"status": "healthy"}}
    health_part: str | None = None
    # where only somebody with a token is told
    health_token: str | None = field(default=None, repr=False)
    # others still report to it while they end
    ends_last: bool = False


@dataclass(frozen=True)
class ProcessId:
    """A process number with the time it was given out: numbers are given out again, times are not."""

    pid: int
    created: float

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        return cls(pid, psutil.Process(pid).create_time())

    @property
    def exists(self) -> bool:
        try:
            # the clock that the time is reckoned from may be set meanwhile
            return bool(abs(psutil.Process(self.pid).create_time() - self.created) < 2)
        except psutil.NoSuchProcess:
            return False

    @property
    def alive(self) -> bool:
        with suppress(psutil.NoSuchProcess):
            return self.exists and bool(psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE)
        return False


@dataclass
class Running:
    """A service that was started."""

    service: Service
    process: subprocess.Popen[bytes]
    id: ProcessId
    since: float = field(default_factory=time.time)

    @property
    def exit_code(self) -> int | None:
        return self.process.poll()


def service_environment(settings: Settings) -> dict[str, str]:
    """This process's environment, with what every service of ours needs."""
    programs = str(Path(sys.executable).parent)
    nearby = ",".join(filter(None, [os.environ.get("NO_PROXY"), "127.0.0.1,localhost"]))
    return dict(os.environ) | {
        "TWIN_HOME": str(settings.home),
        "TWIN_HOST": settings.host,
        # Airflow starts its own programs by their bare names
        "PATH": os.pathsep.join([programs, os.environ.get("PATH", os.defpath)]),
        # a proxy set for the outside must not catch calls to this machine
        "NO_PROXY": nearby,
        "no_proxy": nearby,
    }


def own_service(settings: Settings, name: str, command: str, port: int, path: str = "") -> Service:
    """A command of ours that listens, and answers at `path`."""
    url = url_of(settings.host, port)
    tokens = None if is_loopback(asked_at(settings.host)) else tokens_if_needed(settings)
    return Service(
        name=name,
        command=(sys.executable, "-m", "twin.app", command, "--port", str(port)),
        environment=service_environment(settings),
        log=logs_folder(settings) / f"{name}.log",
        url=f"{url}{path}",
        health_url=f"{url}/health",
        health_token=tokens.of["reader"] if tokens else None,
    )


def logs_folder(settings: Settings) -> Path:
    return settings.folder("logs")


def log_to_stderr() -> None:
    """What the twin's own processes tell; the log of a service is its standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("twin")
    log.addHandler(handler)
    log.setLevel(logging.INFO)


def start(service: Service) -> Running:
    with suppress(FileNotFoundError):
        if service.log.stat().st_size > _LARGEST_LOG_BYTES:
            service.log.replace(service.log.with_suffix(".old.log"))
    with service.log.open("ab") as out:
        process = subprocess.Popen(  # noqa: S603
            service.command,
            env=dict(service.environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,  # what it starts can be found by the session, even when it is gone itself
        )
    return Running(service, process, ProcessId.of(process.pid))


class Health(NamedTuple):
    """How a service that is well describes itself: one that waits has nothing to do its work with yet."""

    state: Literal["healthy", "waiting"] = "healthy"
    note: str = ""


def healthy(running: Iterable[Running]) -> dict[str, Health]:
    """Those that are well, by name. An address that several share is asked once."""
    answers: dict[str, httpx.Response | None] = {}
    well = {}
    for one in running:
        service = one.service
        if one.exit_code is not None:
            continue
        if service.health_url is None:
            well[service.name] = Health()
            continue
        if service.health_url not in answers:
            answers[service.health_url] = _answer(service.health_url, service.health_token)
        health = _health(answers[service.health_url], service.health_part)
        if health is not None:
            well[service.name] = health
    return well


def require_alive(running: Iterable[Running]) -> None:
    for one in running:
        if one.exit_code is not None:
            raise ServiceFailed(
                f"the {one.service.name} ended with code {one.exit_code}; see {one.service.log}"
            )


def wait_until_healthy(running: Collection[Running], timeout_s: float = 120) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        require_alive(running)
        well = healthy(running)
        missing = [one.service for one in running if one.service.name not in well]
        if not missing:
            return
        if time.monotonic() > deadline:
            names = ", ".join(service.name for service in missing)
            raise ServiceFailed(f"not healthy after {timeout_s:.0f} s: {names}; see {missing[0].log}")
        time.sleep(0.5)


def end(running: Iterable[Running]) -> None:
    """The services and all that they started: a running task has a session of its own, and a JVM."""
    running = list(running)
    for last in (False, True):
        end_families(one.id for one in running if one.service.ends_last == last)
    for one in running:
        one.process.wait()


def end_families(leaders: Iterable[ProcessId], patience_s: float = 5) -> None:
    """Leaders are asked first, as they know best how to end what they started; then, with those that wait for
    a task, all that is left; at last nobody is asked."""
    leaders = list(leaders)
    # kept from before: with its parents gone a task in a session of its own could not be found any more
    known = [one for leader in leaders for one in family(leader)]
    _end([psutil.Process(leader.pid) for leader in leaders if leader.alive], patience_s)
    known += [one for leader in leaders for one in family(leader) if one not in known]
    _end(known, patience_s)
    _end(known, patience_s, ask=psutil.Process.kill)


def kill_family(leader: ProcessId) -> None:
    _end(family(leader), patience_s=7, ask=psutil.Process.kill)


def _end(
    processes: Collection[psutil.Process],
    patience_s: float,
    ask: Callable[[psutil.Process], None] = psutil.Process.terminate,
) -> None:
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            ask(one)  # nothing happens to another process that got the same number
    psutil.wait_procs(processes, timeout=patience_s)


def family(leader: ProcessId) -> list[psutil.Process]:
    """The session that a service leads and everything descended from it. The members may outlive their
    leader; the system gives a number out again only when no session has it any more."""
    if psutil.pid_exists(leader.pid) and not leader.exists:
        return []
    children: dict[int, list[psutil.Process]] = {}
    members = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            children.setdefault(process.ppid(), []).append(process)
            if os.getsid(process.pid) == leader.pid:
                members.append(process)
    found = {one.pid: one for one in members}
    while members:
        for child in children.get(members.pop().pid, []):
            if child.pid not in found:
                found[child.pid] = child
                members.append(child)
    return list(found.values())


def free_port(preferred: int, taken: Collection[int] = (), host: str = "127.0.0.1") -> int:
    """The preferred port of this machine, or the next one that nobody uses. 0 prefers none."""
    try:
        family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    except OSError as error:
        raise ServiceFailed(f"{host} is no address of this machine: {error.strerror}") from error
    for port in range(preferred, 65536):
        with socket.socket(family) as probe:
            # connections that were closed a moment ago do not count
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                if port not in taken:
                    probe.bind((host, port))
                    return int(probe.getsockname()[1])
    raise ServiceFailed(f"there is no free port of {host} from {preferred} on")


def _answer(url: str, token: str | None) -> httpx.Response | None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        return httpx.get(url, headers=headers, timeout=5, trust_env=False).raise_for_status()
    except httpx.HTTPError:
        return None


def _health(answer: httpx.Response | None, part: str | None) -> Health | None:
    """None of one that is not well. An answer without words is a good one."""
    if answer is None:
        return None
    if not answer.headers.get("content-type", "").startswith("application/json"):
        return Health()
    told = answer.json() if part is None else answer.json().get(part) or {}
    state = told.get("status")
    return Health(state, told.get("note", "")) if state in ("healthy", "waiting") else None
