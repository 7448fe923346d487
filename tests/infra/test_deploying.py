"""The page on deploying says what is there."""

from __future__ import annotations

import re

from .commands import problem_of
from .compose import INFRA, PROJECT, services
from .variables import ours, unknown_variables

PAGE = (INFRA / "DEPLOYING.md").read_text()


def test_every_variable_of_ours_stands_in_its_table_and_no_other():
    told = set(re.findall(r"`((?:TWIN|AIRFLOW_|MLFLOW)_[A-Z_]+)`", PAGE)) - {"AIRFLOW__SECTION__OPTION"}
    assert {one for one in told if one.startswith("TWIN_")} == {
        one for one in ours() if one.startswith("TWIN_")
    }
    assert unknown_variables(told) <= {"MLFLOW_TRACKING_TOKEN"}


def test_every_service_of_ours_has_a_size():
    sizes = PAGE.partition("## Sizes")[2].partition("\n## ")[0]
    lasting = [name for name, one in services().items() if not one["healthcheck"].get("disable")]
    assert [name for name in lasting if f"`{name}`" not in sizes] == []


def test_files_and_commands_that_it_names_exist():
    for name in set(re.findall(r"infra/[\w./-]+\w", PAGE)):
        assert (PROJECT / name).exists() or name.startswith("infra/secrets"), name
    for command in set(re.findall(r"`twin ([a-z ]+)`", PAGE)):
        first, *rest = command.split()
        words = [first] if first in ("up", "backup", "restore", "models") else [first, *rest]
        needed = {"backup": ["place"], "restore": ["place"], "models": ["rollback"]}.get(first, [])
        assert problem_of(["twin", *words, *needed]) is None, command
