"""Leaks planted in a training set, and a clean one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from expectations.gate import PASSED, verdict_of
from expectations.leakage import TRAINING_LAWS
from features.schemas import spark_schema
from training.encoding import features_of
from twin.app.describing import flat_example
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.tables import TRAINING_SET


@pytest.fixture(scope="module")
def clean():
    """Forty flows of different sizes, whose rate has as much to do with the size as it has in a report."""
    chance = np.random.default_rng(5)
    sizes = np.geomspace(100, 60_000, 40).astype(int)
    configurations = [
        Configuration.from_flat(flat_example("message_flow") | {"message_bytes": int(size)}) for size in sizes
    ]
    rows = pd.DataFrame([one.flat() for one in configurations])
    rows = rows.join(features_of(Columns.of(configurations)), rsuffix="_again")
    rate = 1000 / (2 + sizes / 20_000) * np.exp(chance.normal(0, 0.1, len(sizes)))
    return rows.assign(
        configuration_id=[one.configuration_id for one in configurations],
        source_id="s",
        exam_group=[f"g{at // 5}" for at in range(len(sizes))],
        exam_column=None,
        figures=1,
        published_at=pd.Timestamp("2004-01-01").date(),
        platform_id="p",
        workload_id=[f"w{at}" for at in range(len(sizes))],
        throughput_msgs_per_s=rate,
        cpu_ms_per_msg=1500 / rate * np.exp(chance.normal(0, 0.1, len(sizes))),
    )


@pytest.fixture
def verdict(spark, settings):
    def of(rows):
        cells = rows.reindex(columns=list(TRAINING_SET.columns)).astype(object)
        whole = {field.name for field in TRAINING_SET.fields if field.kind == "integer"}
        typed = [
            tuple(
                None if pd.isna(value) else int(value) if name in whole else value
                for name, value in zip(cells.columns, row, strict=True)
            )
            for row in cells.itertuples(index=False, name=None)
        ]
        frame = spark.createDataFrame(typed, spark_schema(TRAINING_SET))
        return verdict_of(settings, TRAINING_SET, frame, TRAINING_LAWS)

    return of


def test_a_clean_training_set_passes(verdict, clean):
    assert verdict(clean) == PASSED


def test_a_feature_made_from_the_target_is_caught(verdict, clean):
    planted = clean.assign(memory_mb=(clean["throughput_msgs_per_s"] * 100).round())
    assert "no_target_in_a_feature" in verdict(planted)


def test_a_feature_made_from_the_other_target_is_caught(verdict, clean):
    planted = clean.assign(log_write_ms=0.01 / clean["cpu_ms_per_msg"])
    assert "no_target_in_a_feature" in verdict(planted)


def test_a_workload_in_two_groups_is_caught(verdict, clean):
    planted = clean.assign(workload_id=["w0", "w0", *clean["workload_id"].iloc[2:]])
    assert verdict(planted) == PASSED  # both are in one group
    planted = clean.assign(workload_id=[*clean["workload_id"].iloc[:-1], "w0"])
    assert "no_group_split" in verdict(planted)


def test_a_configuration_that_is_there_twice_is_caught(verdict, clean):
    assert "configuration_id_unique" in verdict(pd.concat([clean, clean.tail(1)]))
