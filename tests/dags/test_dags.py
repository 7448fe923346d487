"""The DAG files: thin, importable without heavy packages, and chained by assets."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest

from twin.app.main_job import CHAIN
from twin.core.settings import PROJECT

HEAVY = ("pyspark", "mlflow", "great_expectations", "xgboost", "pandas")


@pytest.fixture(scope="module")
def dag_bag(_home):
    from airflow.dag_processing.dagbag import DagBag
    from airflow.utils.db import initdb

    initdb()
    return DagBag(PROJECT / "dags")


def test_every_dag_file_imports(dag_bag):
    assert dag_bag.import_errors == {}
    assert sorted(dag_bag.dags) == sorted(CHAIN)


def test_each_dag_waits_for_what_the_one_before_leaves(dag_bag):
    for earlier, later in pairwise(CHAIN):
        left = {outlet.name for task in dag_bag.dags[earlier].tasks for outlet in task.outlets}
        awaited = {asset.name for asset in dag_bag.dags[later].timetable.asset_condition.objects}
        assert awaited <= left


def test_every_dag_tells_an_operator_what_to_do(dag_bag):
    for dag in dag_bag.dags.values():
        assert "When it fails" in dag.doc_md


def test_a_dag_file_imports_nothing_heavy():
    code = (
        f"import dags.{', dags.'.join(CHAIN)}, sys; print([name for name in {HEAVY} if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.splitlines()[-1] == "[]"
