"""`make fuzz`: every reader of outside input, each in a process of its own, for FUZZ_MINUTES of processor
time in all (10 unless told) and from FUZZ_SEED on (1). An input that fails is kept in `regressions`, where
every later `make test` tries it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..recording import record
from .targets import targets
from .test_regressions import REGRESSIONS, slug

_WORKER = Path(__file__).with_name("worker.py")
_AT_A_TIME = 2


@dataclass(frozen=True)
class Tried:
    name: str
    inputs: int
    edges: int
    # what was wrong, with the input
    faults: dict[str, Path]

    @property
    def told(self) -> str:
        crashes = sum(not one.startswith("hang") for one in self.faults)
        hangs = len(self.faults) - crashes
        return f"{self.inputs:,} inputs, {self.edges:,} edges, {crashes} crashes, {hangs} hangs"


def _try(name: str, seconds: float, seed: int, folder: Path) -> Tried:
    folder.mkdir()
    log = folder / "log"
    with log.open("wb") as out:
        done = subprocess.run(
            [sys.executable, str(_WORKER), name, str(seconds), str(seed), str(folder)],
            stdout=out, stderr=subprocess.STDOUT, check=False, timeout=20 * seconds + 300,
        )  # fmt: skip
    result = folder / "result.json"
    said = json.loads(result.read_text()) if result.exists() else {"tried": 0, "faults": {}}
    faults = {wrong: folder / "found" / digest for wrong, digest in said["faults"].items()}
    # what ended the process itself: no memory left, a fault in compiled code
    for left in sorted((folder / "found").glob("*-*")):
        faults[
            f"{'hang' if left.name.startswith('timeout') else 'crash'}: the process ended, {left.name}"
        ] = left
    if done.returncode and not faults:
        faults[f"crash: the process ended with {done.returncode}, see {log}"] = log
    edges = [int(found) for found in re.findall(r"cov: (\d+)", log.read_text(errors="replace"))]
    tried = Tried(name, said["tried"], max(edges, default=0), faults)
    print(f"{name}: {tried.told}", flush=True)
    return tried


def test_every_reader_survives(tmp_path):
    minutes = float(os.environ.get("FUZZ_MINUTES") or 10)
    seed = int(os.environ.get("FUZZ_SEED") or 1)
    only = os.environ.get("FUZZ_ONLY")
    names = [name for name in targets() if only in (None, "", name)]
    seconds = 60 * minutes / len(names)
    print(f"\n{len(names)} readers, {seconds:.0f} s of processor time each, seed {seed}", flush=True)
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        tried = list(pool.map(lambda name: _try(name, seconds, seed, tmp_path / slug(name)), names))
    found = [(one.name, wrong, raw) for one in tried for wrong, raw in one.faults.items()]
    for name, wrong, raw in found:
        if raw.name == "log":
            print(f"{name}: {wrong}")
            continue
        kept = REGRESSIONS / slug(name) / raw.name
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(raw, kept)
        print(f"{name}: {wrong}\n  {kept}")
    if not only:
        record(
            "fuzzing",
            "make fuzz",
            "Fuzzing of every reader",
            {
                "processor minutes": minutes,
                "seed": seed,
                "readers": len(tried),
                "inputs tried": sum(one.inputs for one in tried),
                "faults found": len(found),
                **{one.name: one.told for one in tried},
            },
        )
    assert [f"{name}: {wrong}" for name, wrong, _ in found] == []
    assert min(one.inputs for one in tried) > 0
