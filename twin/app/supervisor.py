"""Keeps the services of the platform up until it is told to end them."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import FrameType

import httpx

from twin.app.local_airflow import (
    AirflowFailed,
    airflow_services,
    connected,
    only_airflow,
    prepare_database,
)
from twin.app.local_mlflow import has_own_server, mlflow_service, serving_service
from twin.app.local_page import page_service
from twin.app.platform import PlatformState, ServiceState, State, end_orphans, forget_state
from twin.app.services import (
    ProcessId,
    Running,
    Service,
    ServiceFailed,
    end,
    free_port,
    healthy,
    kill_family,
    log_to_stderr,
    start,
)
from twin.app.serving.tokens import BadTokens
from twin.core.settings import Settings

API_SERVER, MLFLOW, SERVING, PAGE = "api-server", "mlflow", "serving", "page"
PREFERRED_PORTS = {API_SERVER: 8080, MLFLOW: 5000, SERVING: 5001, PAGE: 8050}
_CHECK_EVERY_S = 5.0
# a service that ends again and again is left alone, with its log for the reason
MOST_RESTARTS, _WITHIN_S = 5, 600.0

log = logging.getLogger("twin.supervisor")


@dataclass
class Watched:
    """A service and what became of it."""

    name: str
    service: Service
    running: Running | None = None
    state: State = "starting"
    note: str = ""
    # when to start it; None while it runs, waits or was given up
    due: float | None = 0.0
    endings: list[float] = field(default_factory=list)

    def ended(self, now: float) -> None:
        """Started again, later each time; given up if it does not stay up."""
        self.running = None
        self.endings = [*(at for at in self.endings if now - at < _WITHIN_S), now]
        if len(self.endings) > MOST_RESTARTS:
            self.state, self.due = "failed", None
            self.note = f"ended {len(self.endings)} times in {_WITHIN_S / 60:.0f} minutes"
        else:
            self.state, self.due = "restarting", now + 2.0 ** (len(self.endings) - 1)

    def told(self) -> ServiceState:
        running = self.running
        return ServiceState(
            name=self.name,
            state=self.state,
            url=self.service.url,
            process=running.id if running else None,
            since=datetime.fromtimestamp(running.since, UTC) if running else None,
            note=self.note,
        )


class Supervisor:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stopping = threading.Event()
        self._state = PlatformState(supervisor=ProcessId.of(os.getpid()), started_at=datetime.now(UTC))
        self._ports: dict[str, int] = {}
        self._watched: dict[str, Watched] = {}
        self._pools_are_there = False
        self._next_check = 0.0

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        """Until `stop`. Nothing that was started is left behind."""
        with only_airflow(self._settings):
            end_orphans(self._settings)
            self._state.write(self._settings)
            self._ports = _chosen_ports(self._settings)
            try:
                self._prepare()
                while not self._stopping.wait(1):
                    self._keep_alive()
                    if time.monotonic() >= self._next_check:
                        self._check()
                    self._write_state()
            finally:
                log.info("ending")
                end(one.running for one in self._watched.values() if one.running)
                forget_state(self._settings)
                log.info("ended")

    def _prepare(self) -> None:
        """Both databases, before anything can open them half made; then what is to be kept up."""
        self._prepare_registry()
        prepare_database(self._settings, self._ports[API_SERVER])
        services = airflow_services(self._settings, self._ports[API_SERVER])
        if not has_own_server(self._settings):
            services.append(mlflow_service(self._settings, self._ports[MLFLOW]))
        services.append(serving_service(self._settings, self._ports[SERVING]))
        services.append(page_service(self._settings, self._ports[PAGE]))
        self._watched = {
            service.name: Watched(service.name, service, note=self._port_taken(service.name))
            for service in services
        }

    def _keep_alive(self) -> None:
        for one in self._watched.values():
            if one.running is not None and one.running.exit_code is not None:
                self._bury(one, one.running)
            if one.due is not None and time.monotonic() >= one.due:
                one.running, one.due, one.state = start(one.service), None, "starting"
                self._next_check = 0.0
                log.info("%s started with pid %d", one.name, one.running.id.pid)

    def _bury(self, one: Watched, dead: Running) -> None:
        """What it left running would get in the way of the next one: it holds ports, and runs tasks that are
        about to be given out again. The executor's workers do not listen to anyone but their dead parent."""
        log.warning("%s ended with code %s; see %s", one.name, dead.exit_code, dead.service.log)
        kill_family(dead.id)
        one.ended(time.monotonic())
        log.info("%s: %s %s", one.name, one.state, one.note)

    def _prepare_registry(self) -> None:
        from mlflow.exceptions import MlflowException

        from training.registry import Registry

        try:
            Registry(self._settings)
        except MlflowException as error:
            # a tracking server elsewhere may be away for a while
            log.warning("the registry does not answer: %s", error)

    def _check(self) -> None:
        well = healthy(one.running for one in self._watched.values() if one.running)
        for one in self._watched.values():
            before = one.state
            if one.name in well:
                one.state, note = well[one.name]
                one.note = " ".join(filter(None, [note, self._port_taken(one.name)]))
            elif one.running is not None and one.state in ("healthy", "waiting"):
                one.state = "unhealthy"
            if one.state != before:
                log.info("%s is %s %s", one.name, one.state, one.note)
        settled = all(one.state in ("healthy", "waiting", "failed") for one in self._watched.values())
        self._next_check = time.monotonic() + (_CHECK_EVERY_S if settled else 0)
        api_server = self._watched[API_SERVER]
        if not self._pools_are_there and api_server.state == "healthy":
            self._ensure_pools(str(api_server.service.url))

    def _ensure_pools(self, url: str) -> None:
        try:
            connected(self._settings, url).ensure_pools()
            self._pools_are_there = True
        except httpx.HTTPError as error:
            log.warning("Airflow's pools could not be made yet: %s", error)

    def _port_taken(self, name: str) -> str:
        preferred = PREFERRED_PORTS.get(name)
        return "" if preferred in (None, self._ports.get(name)) else f"(port {preferred} is taken)"

    def _write_state(self) -> None:
        services = tuple(one.told() for one in self._watched.values())
        if services != self._state.services:
            self._state = self._state.model_copy(update={"services": services})
            self._state.write(self._settings)


def _chosen_ports(settings: Settings) -> dict[str, int]:
    chosen: dict[str, int] = {}
    for name, preferred in PREFERRED_PORTS.items():
        # Airflow has users of its own, and stays on this machine
        host = "127.0.0.1" if name == API_SERVER else settings.host
        chosen[name] = free_port(preferred, chosen.values(), host)
    return chosen


def run_until_told_to_stop(settings: Settings) -> None:
    supervisor = Supervisor(settings)

    def stop(_number: int, _frame: FrameType | None) -> None:
        supervisor.stop()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    supervisor.run()


if __name__ == "__main__":
    log_to_stderr()
    try:
        run_until_told_to_stop(Settings.from_environment())
    except (AirflowFailed, BadTokens, ServiceFailed) as error:
        log.error("%s", error)
        sys.exit(1)
