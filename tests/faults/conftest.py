"""The chain on a small home without any fault, once: how long each step takes and what it leaves; faults are
tried on copies of the home from before each step."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from twin.app.landing import Landing
from twin.core.settings import Settings

from .homes import answers_of, content_of, drop_figures, drop_requests, put_back, settings_of
from .killing import Ended, run_step


@dataclass(frozen=True)
class Stage:
    """A step, the home from before it, and what it is worth when it is done."""

    step: str
    home: Path
    kept: Path
    usual: Ended
    result: Callable[[Settings], object]
    expected: object
    sources: set[str]

    def put_back(self) -> Settings:
        put_back(self.home, self.kept)
        return settings_of(self.home)


@pytest.fixture(scope="session")
def stages(tmp_path_factory) -> dict[str, Stage]:
    folder = tmp_path_factory.mktemp("faults")
    home = folder / "home"
    home.mkdir()
    settings = settings_of(home)
    sources = {drop_figures(settings, number) for number in range(3)}
    drop_requests(settings)
    found = {}
    for step, result in RESULTS.items():
        kept = folder / f"before-{step}"
        shutil.copytree(home, kept)
        usual = run_step(step, home, folder / f"{step}.log")
        assert usual.code == 0, usual.printed
        found[step] = Stage(step, home, kept, usual, result, result(settings), sources)
    return found


def twin(settings: Settings, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command on a home, as a user has it."""
    own = ("AIRFLOW", "MLFLOW_TRACKING_URI", "TWIN_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return subprocess.run(
        [sys.executable, "-m", "twin.app", *map(str, arguments)],
        env=inherited | {"TWIN_HOME": str(settings.home)},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def _of_registry(settings: Settings) -> object:
    """By a process of its own: MLflow would go on reading the database of a home that was put back since."""
    told = json.loads(twin(settings, "models", "--json").stdout)
    return [(one["version"], one["aliases"], one["reason"], one["scores"]) for one in told]


def _of_answers(settings: Settings) -> object:
    files = sorted(path.name for path in (settings.home / "answers").iterdir())
    return answers_of(settings, "asked.jsonl"), files, Landing(settings).counts()


RESULTS: dict[str, Callable[[Settings], object]] = {
    "ingest": lambda settings: (content_of(settings), Landing(settings).counts()),
    "validate": content_of,
    "train": _of_registry,
    "predict": _of_answers,
}
