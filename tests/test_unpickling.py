"""Nothing of ours reads a format that can run code: the house rule, looked for in the code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from twin.core.settings import PROJECT

PACKAGES = ("dags", "twin", "features", "expectations", "training")
RUN_CODE = {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "jsonpickle"}
# by the name of what is called, whatever it is called on
CALLS = {"read_pickle", "eval", "exec", "unsafe_load", "full_load"}


def found_in(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [one.name for one in names if one.name.split(".")[0] in RUN_CODE]
            case ast.ImportFrom(module=str(module), names=names):
                parts = {*module.split("."), *(one.name for one in names)}
                found += sorted(parts & RUN_CODE)
            case ast.keyword(arg="allow_pickle", value=ast.Constant(value=True)):
                found.append("allow_pickle")
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                found.append(name)
            case ast.Call(func=ast.Attribute(attr=name)) if name in CALLS - {"eval", "exec"}:
                found.append(name)
    return found


def modules() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((PROJECT / package).rglob("*.py"))]


def test_nothing_is_unpickled_or_evaluated():
    found = {str(path.relative_to(PROJECT)): found_in(path.read_text()) for path in modules()}
    assert len(found) > 200
    assert {name: what for name, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "import pickle",
        "import pickle as p",
        "from pickle import loads",
        "from pyspark import cloudpickle",
        "import joblib",
        "def f():\n    import marshal",
        "np.load(path, allow_pickle=True)",
        "pd.read_pickle(path)",
        "eval(text)",
        "yaml.unsafe_load(text)",
    ],
)
def test_a_planted_use_is_found(planted):
    assert found_in(planted)


def test_what_only_looks_alike_is_not():
    assert found_in("np.load(path, allow_pickle=False)\nframe.eval('a > 1')\nimport json") == []
