"""This machine, in the columns of a configuration."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil

# some hundredths of a second
_WORK = 500_000
_OS = {"Linux": "linux", "Windows": "windows", "AIX": "aix", "SunOS": "solaris"}


@cache
def this_machine() -> dict[str, Any]:
    """Machines are told apart by their processor, not by their name: two of a kind are one configuration.
    `TWIN_MACHINE` says it better where a processor is not enough."""
    clock = psutil.cpu_freq()
    found = {
        "os": _OS.get(platform.system(), "linux"),
        "machine": os.environ.get("TWIN_MACHINE") or _processor(),
        "cpus": len(psutil.Process().cpu_affinity()) if hasattr(psutil.Process, "cpu_affinity") else None,
        "mhz": round(clock.max or clock.current) if clock else None,
        "memory_mb": round(psutil.virtual_memory().total / 2**20),
    }
    found["cpus"] = found["cpus"] or psutil.cpu_count() or 1
    return {name: value for name, value in found.items() if value}


def speed() -> float:
    """How fast this machine is at the moment, in rounds of a fixed piece of work a second. Virtual machines
    share their processors with others: a broker that seems slower may only have slower neighbours."""
    started, left = perf_counter(), 0
    for number in range(_WORK):
        left += number * number % 7
    return 1 / (perf_counter() - started)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())
