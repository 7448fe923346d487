"""Archives of 1, 10 and 50 million intervals over thousands of files: our ingest on Spark, which also keeps
every interval, beside DuckDB, which sums up the same files and keeps nothing. In one run; prints JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import psutil

from .archive import generate

OURS = Path(__file__).with_name("archive_ingest.py")
DUCKDB = Path(__file__).with_name("duckdb_summary.py")
# samples and files
SIZES = ((1_000_000, 200), (10_000_000, 1000), (50_000_000, 5000))
_LOOK_EVERY_S = 0.2
_MEMORY_GB = 16


def run(script, folder, home):
    """What it prints, and the most memory that it and its children took at a time."""
    process = subprocess.Popen(
        [sys.executable, script, folder],
        env=os.environ | {"TWIN_HOME": str(home)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    peak = 0
    over = threading.Event()

    def watch():
        nonlocal peak
        while not over.wait(_LOOK_EVERY_S):
            peak = max(peak, memory_of(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    printed, errors = process.communicate()
    over.set()
    watcher.join()
    assert process.returncode == 0, errors
    return json.loads(printed.splitlines()[-1]) | {"peak_mb": peak // 2**20}


def memory_of(pid):
    """Pages that several processes share count once."""
    total = 0
    try:
        for process in (top := psutil.Process(pid), *top.children(recursive=True)):
            total += process.memory_full_info().pss
    except psutil.NoSuchProcess:  # it ended while we looked
        pass
    return total


def test_archives(tmp_path):
    told = []
    for samples, files in SIZES:
        folder, home = tmp_path / "archive", tmp_path / "home"
        made = generate(folder, samples, files, seed=samples)
        ours, theirs = run(OURS, folder, home), run(DUCKDB, folder, home)
        assert ours["samples"] == theirs["samples"] == samples
        assert ours["runs"] == theirs["runs"] == made.runs
        told.append((ours, theirs))
        line = {
            "samples": samples, "files": files, "mb": made.bytes // 2**20,
            "ours": ours, "duckdb": theirs,
            "ours_over_duckdb_speed": round(theirs["seconds"] / ours["seconds"], 2),
        }  # fmt: skip
        print(json.dumps({"bench": "archive", "synthetic": True, **line}))
        for one in (folder, home):
            shutil.rmtree(one)
    (one, _), (ten, duck_ten), (fifty, duck_fifty) = told
    # what each million of intervals more takes: where one machine's memory ends for one that holds all of it
    growth = (duck_fifty["peak_mb"] - duck_ten["peak_mb"]) / (duck_fifty["samples"] - duck_ten["samples"])
    summed = {
        "time_ratio_10_1": round(ten["seconds"] / one["seconds"], 2),
        "time_ratio_50_10": round(fifty["seconds"] / ten["seconds"], 2),
        "memory_ratio_50_10": round(fifty["peak_mb"] / ten["peak_mb"], 2),
        "duckdb_memory_ratio_50_10": round(duck_fifty["peak_mb"] / duck_ten["peak_mb"], 2),
        f"samples_at_which_duckdb_fills_{_MEMORY_GB}_gb": round((_MEMORY_GB * 1024) / growth, -6),
    }
    print(json.dumps({"bench": "archive_growth", **summed}))
