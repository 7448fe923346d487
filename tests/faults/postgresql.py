"""A PostgreSQL server of the tests' own, to be stopped and started at will; that of the machine is left
alone."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from twin.app.services import free_port

_PROGRAMS = Path("/usr/lib/postgresql")


class NoPostgresql(Exception):
    """The server's programs are not on this machine."""


@dataclass(frozen=True)
class Postgresql:
    folder: Path
    port: int
    programs: Path

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://twin@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self._run(
            "pg_ctl", "-D", self.folder / "data", "-w", "-l", self.folder / "log", "-o", options, "start"
        )

    def stop(self, how: str = "immediate") -> None:
        """Immediately: what was not committed is lost, as when it is killed."""
        self._run("pg_ctl", "-D", self.folder / "data", "-w", "-m", how, "stop")

    def create(self, database: str) -> None:
        self._run("createdb", "-h", "127.0.0.1", "-p", self.port, "-U", "twin", database)

    def initialise(self) -> None:
        self._run("initdb", "-D", self.folder / "data", "-U", "twin", "--auth=trust", "--no-sync")

    def _run(self, program: str, *arguments: object) -> None:
        # the server refuses to run as root
        other = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        command = [*other, str(self.programs / program), *map(str, arguments)]
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL, timeout=60)


@contextmanager
def running_postgresql(folder: Path) -> Iterator[Postgresql]:
    programs = sorted(_PROGRAMS.glob("*/bin")) or [Path(shutil.which("pg_ctl") or "").parent]
    if not (programs[-1] / "pg_ctl").exists():
        raise NoPostgresql("pg_ctl is not on this machine: install PostgreSQL's server")
    server = Postgresql(folder, free_port(15_432), programs[-1])
    if os.geteuid() == 0:
        os.chown(folder, pwd.getpwnam("postgres").pw_uid, -1)
    server.initialise()
    server.start()
    try:
        yield server
    finally:
        server.stop("fast")
