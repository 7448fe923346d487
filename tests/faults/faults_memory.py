"""Executors of a real cluster that run out of memory: told in a sentence, and the table stays as it was."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from features.lake import Lake
from twin.core.tables import FIGURES

from ..cluster import NoJava, running_cluster
from ..recording import record

_JOB = Path(__file__).with_name("out_of_memory.py")
_PATIENCE_S = 240


def test_an_executor_without_memory_is_told_and_changes_nothing(stages, tmp_path):
    settings = stages["train"].put_back()
    lake = Lake(settings)
    before, rows = lake.version(FIGURES), lake.pandas(FIGURES)
    try:
        with running_cluster(tmp_path) as cluster:
            driver = cluster.drive(settings.home, _JOB)
            code = driver.process.wait(_PATIENCE_S)
            printed = driver.service.log.read_text()
            told = [path.read_text(errors="replace") for path in (tmp_path / "work").rglob("stderr")]
    except NoJava as error:
        pytest.skip(str(error))
    deaths = sum("OutOfMemoryError" in one for one in told)
    sentence = printed.strip().splitlines()[-1]
    record(
        "memory",
        "make faults",
        "A Spark executor out of memory",
        {
            "executors that ran out of memory": deaths,
            "told as": sentence,
            "table versions added": lake.version(FIGURES) - before,
        },
    )
    assert code == 1, printed
    assert deaths, told
    assert re.match(r"table figures could not be written: .", sentence), printed
    assert lake.version(FIGURES) == before
    assert lake.pandas(FIGURES).equals(rows)
