"""The house rules: layout, pins, seams."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from twin.core.settings import PROJECT

PACKAGES = ("dags", "twin", "features", "expectations", "training")


def lint_imports(project: Path) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys; sys.path.insert(0, '.'); sys.argv = ['lint-imports', '--no-cache'];"
        "from importlinter.cli import lint_imports_command; lint_imports_command()"
    )
    return subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False
    )


@pytest.fixture
def copy(tmp_path):
    """The packages and their import rules, to plant faults in."""
    for package in PACKAGES:
        shutil.copytree(PROJECT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_import_rules_hold(copy):
    assert lint_imports(copy).returncode == 0


@pytest.mark.parametrize(
    ("module", "planted"),
    [
        ("twin/core/settings.py", "import features.lake"),
        ("features/lake.py", "import training.regression"),
        ("expectations/gate.py", "import twin.app.cli"),
        ("twin/sources/document.py", "import pyspark"),
        ("training/nearest.py", "import dags.assets"),
    ],
)
def test_a_planted_upward_import_is_found(copy, module, planted):
    path = copy / module
    path.write_text(f"{path.read_text()}\n{planted}\n")
    result = lint_imports(copy)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "BROKEN" in result.stdout


def test_constraints_are_plain_pins():
    lines = (PROJECT / "constraints.txt").read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+", line)] == []


def test_every_dependency_is_pinned():
    import tomllib

    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    pinned = {line.split("==")[0] for line in (PROJECT / "constraints.txt").read_text().splitlines()}
    wanted = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    names = {re.match(r"[A-Za-z0-9-]+", one).group().lower() for one in wanted}
    # an extra may name another of our own
    assert names - {project["name"]} <= pinned
