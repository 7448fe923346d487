"""Nothing but the bounded readers opens what comes from outside: the house rule, looked for in the code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from twin.core.settings import PROJECT

PACKAGES = ("dags", "twin", "features", "expectations", "training")
READERS = "twin/core/outside.py"
# Parsers whose input anybody may have written; each module is named here with whose words it reads.
OUR_OWN = {
    "json": {
        "features/archive.py": "answers of our own tasks",
        "features/table_files.py": "notes and the log of our own tables",
        "features/upkeep.py": "the log of our own tables",
        "training/batch.py": "requests that were staged here",
        "training/hyperparameters.py": "shipped",
        "training/model.py": "a registered model",
        "training/regression.py": "a registered model",
        "training/registry.py": "the deployment's tokens",
        "training/sync.py": "a column that we wrote",
        "twin/app/book/chapters.py": "a column that we wrote",
        "twin/app/commands/learning.py": "a frame that was just written",
        "twin/app/examining.py": "an answer of the model",
        "twin/app/freshness.py": "a note in the home",
        "twin/app/journal.py": "our own journal",
        "twin/app/local_airflow.py": "a file in the home",
        "twin/app/main_job.py": "answers that were just written",
        "twin/app/predicting.py": "answers that were just written",
        "twin/app/synchronising.py": "an answer of the model",
        "twin/app/telling.py": "an answer of the model",
        "twin/harness/brokers/nats.py": "a broker that we asked",
        "twin/harness/flow/plan.py": "a plan that we wrote",
        "twin/sources/harness/interpreting.py": "a column that we wrote",
        "twin/sources/harness/json_places.py": "keys of a text that was read by the reader",
        "twin/sources/harness/run_measuring.py": "a column that we wrote",
        "twin/sources/interpreting.py": "a column that we wrote",
        "twin/sources/pdf.py": "our own child",
    },
    "yaml": {
        "twin/app/advising.py": "shipped",
        "twin/app/describing.py": "writes only",
        "twin/harness/experiments.py": "shipped",
        "twin/sources/declarations.py": "shipped",
        "twin/systems/model.py": "shipped",
        "twin/systems/transfer.py": "shipped",
    },
    "pdfplumber": {"twin/sources/pdf.py": "the reader of PDF"},
}
READING = {"json": {"load", "loads", "JSONDecoder"}, "yaml": None, "pdfplumber": None}


def _modules() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((PROJECT / package).rglob("*.py"))]


def reading_of(source: str, module: str) -> list[str]:
    """Names of a parsing module that are used; for `json`, those that read."""
    wanted = READING[module]
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=used) if name == module:
                found.append(used)
            case ast.ImportFrom(module=name, names=names) if name and name.split(".")[0] == module:
                found += [one.name for one in names]
            case ast.Import(names=names) if any(one.name == module and one.asname for one in names):
                found.append(f"{module} under another name")
    return [used for used in found if wanted is None or used in wanted or " " in used]


@pytest.mark.parametrize("module", OUR_OWN)
def test_outside_input_goes_through_the_readers(module):
    using = {
        str(path.relative_to(PROJECT)) for path in _modules() if reading_of(path.read_text(), module)
    } - {READERS}
    assert using - OUR_OWN[module].keys() == set()
    assert OUR_OWN[module].keys() - using == set()


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(PROJECT)))
def test_no_loader_of_yaml_builds_objects(path):
    unsafe = {"Loader", "FullLoader", "UnsafeLoader", "CLoader", "CFullLoader", "full_load", "unsafe_load"}
    assert not unsafe & set(reading_of(path.read_text(), "yaml"))


def test_a_planted_use_is_found():
    assert reading_of("import yaml\nyaml.load(x, yaml.UnsafeLoader)", "yaml") == ["load", "UnsafeLoader"]
    assert reading_of("from json import loads", "json") == ["loads"]
    assert reading_of("import json as j", "json") == ["json under another name"]
    assert reading_of("import json\njson.dumps(1)", "json") == []
