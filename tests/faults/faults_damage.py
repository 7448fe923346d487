"""Files of tables damaged at random: found and named at the next read, or harmless; then restored."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

from features.damage import Damaged
from features.lake import Lake
from twin.app.repairing import carry_out, plans
from twin.core.tables import DOCUMENTS, FIGURES

from ..recording import record
from .homes import drop_figures
from .killing import run_step

SEED, TRIES = 1021, 200


def bit(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def cut(path: Path, draw: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(len(content))])


def zeros(path: Path, draw: random.Random) -> None:
    """A block that never came to the disk."""
    content = bytearray(path.read_bytes())
    begin = draw.randrange(len(content))
    content[begin : begin + 512] = bytes(len(content[begin : begin + 512]))
    path.write_bytes(content)


def gone(path: Path, _: random.Random) -> None:
    path.unlink()


HARMS = {"a bit": bit, "cut": cut, "zeros": zeros, "gone": gone}


def test_damage_is_found_or_harmless_and_restored(stages, tmp_path):
    """Two versions of each table; whatever is read must be the rows that were written."""
    settings = stages["validate"].put_back()
    drop_figures(settings, 99)
    assert run_step("ingest", settings.home, tmp_path / "log").code == 0
    lake, draw, counted = Lake(settings), random.Random(SEED), Counter()
    rows = {table: [lake.pandas(table, version) for version in (0, 1)] for table in (FIGURES, DOCUMENTS)}
    sound = tmp_path / "sound"
    shutil.copytree(settings.home / "lake", sound)
    for _ in range(TRIES):
        table = draw.choice(list(rows))
        folder = Path(lake.uri(table).removeprefix("file://"))
        files = sorted(one for kind in ("*.parquet", "_delta_log/*.json") for one in folder.rglob(kind))
        victim, kind = draw.choice(files), draw.choice(list(HARMS))
        HARMS[kind](victim, draw)
        try:
            read = lake.pandas(table)
        except Damaged as error:
            counted.update(found=1, named=error.table == table.name and bool(error.damage.file))
        else:
            right = read.equals(rows[table][1])
            counted.update({"harmless" if right else "wrong": 1})
            if not right:
                print(f"wrong rows after {kind}: {victim}")
        deep = plans(settings, [], None, False)
        counted.update(deep=bool(deep))
        carry_out(settings, deep)
        if any(plan.repair.version is None for plan in deep):
            counted.update(anew=1)
        else:
            now = lake.pandas(table)
            restored = [version for version in (1, 0) if now.equals(rows[table][version])]
            counted.update({("newest", "before")[1 - restored[0]] if restored else "neither": 1})
            if not restored:
                print(f"not restored after {kind}: {victim}")
        shutil.rmtree(settings.home / "lake")
        shutil.copytree(sound, settings.home / "lake")
    record(
        "damage",
        "make faults",
        "Damaged Parquet files and log entries",
        {
            "files damaged (a bit, a block of zeros, cut, gone)": TRIES,
            "found and named at the next read": counted["found"],
            "not in the way of that read, whose rows were right": counted["harmless"],
            "found by the deep check": counted["deep"],
            "reads with wrong rows": counted["wrong"],
            "afterwards at the newest version": counted["newest"],
            "afterwards at the version before": counted["before"],
            "no version left, begun anew": counted["anew"],
            "restored to neither": counted["neither"],
        },
    )
    assert (counted["wrong"], counted["neither"]) == (0, 0)
    assert counted["named"] == counted["found"]
