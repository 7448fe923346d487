"""A disk that is full in the middle of a step: told in a sentence, nothing changed, and done when there is
room. The home lies on a file system of its own, so root is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter

import pytest

from ..recording import record
from .homes import looked_at, settings_of
from .killing import run_step

# of what a step writes, this share still fits
SHARES = {"ingest": (0.0, 0.4), "validate": (0.1, 0.5, 0.8), "train": (0.0, 0.5), "predict": (0.3,)}
_PAGE = 4096


@pytest.fixture
def disk(stages):
    """Mounted over the place of the home, because MLflow notes whole paths; sized anew while it is in use."""
    home = next(iter(stages.values())).home
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system of a given size")
    shutil.rmtree(home)
    home.mkdir()

    def sized(size):
        how = f"size={size}" if not os.path.ismount(home) else f"remount,size={size}"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", how, "tmpfs", home], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr}")

    yield sized
    subprocess.run(["umount", home], check=True)


def size_of(folder):
    return sum(-(-path.lstat().st_size // _PAGE) * _PAGE for path in folder.rglob("*"))


def used(home):
    told = os.statvfs(home)
    return (told.f_blocks - told.f_bfree) * told.f_frsize


@pytest.mark.parametrize(
    ("step", "share"), [(step, one) for step, shares in SHARES.items() for one in shares]
)
def test_a_full_disk_is_told_and_changes_nothing(step, share, stages, disk, counted, tmp_path):
    stage = stages[step]
    following = list(stages)[list(stages).index(step) + 1 :]
    disk(1 << 30)
    shutil.copytree(stage.kept, stage.home, dirs_exist_ok=True)
    written = size_of(stages[following[0]].kept) - size_of(stage.kept) if following else 4_000_000
    disk(used(stage.home) + int(share * written) + 8 * _PAGE)
    settings = settings_of(stage.home)
    ended = run_step(step, stage.home, tmp_path / "log")
    assert ended.code == 1, ended.printed
    told = any(words in ended.printed for words in ("No space left on device", "disk is full"))
    seen = looked_at(settings, stage.sources)
    counted.update(full=1, told=told, lost=seen.lost, twice=seen.twice)
    assert told, ended.printed[-3000:]
    assert (seen.lost, seen.twice) == (0, 0)
    disk(1 << 30)
    again = run_step(step, stage.home, tmp_path / "log")
    assert again.code == 0, again.printed
    counted.update(unlike=stage.result(settings) != stage.expected)
    assert not counted["unlike"], step


@pytest.fixture(scope="module")
def counted():
    return Counter()


def test_all_of_it_is_recorded(counted):
    assert counted["full"] == sum(map(len, SHARES.values()))
    record(
        "disk",
        "make faults",
        "No space left",
        {
            "disks that were full in the middle of a step": counted["full"],
            "told as such": counted["told"],
            "rows lost": counted["lost"],
            "rows twice": counted["twice"],
            "results unlike those with room": counted["unlike"],
        },
    )
