"""A small model, quickly fitted, for all tests of models."""

from __future__ import annotations

import pandas as pd
import pytest

from training.dataset import Data
from training.encoding import features_of
from training.model import TwinModel
from twin.core.columns import Columns
from twin.core.tables import TARGETS


@pytest.fixture(scope="session")
def small_data(measured):
    """The hub and the cluster of the shipped figures, as the training set has them."""
    sources = ("mqsi-v11-solaris", "wmq-v53-windows-clusters")
    figures = tuple(one for one in measured if one.source_id in sources and one.exam_group)
    told = [one for one in figures if one.metric in TARGETS]
    keys = pd.DataFrame(
        {
            "configuration_id": [one.configuration.configuration_id for one in told],
            "source_id": [one.source_id for one in told],
            "exam_group": [str(one.exam_group) for one in told],
            "metric": [one.metric for one in told],
            "value": [one.value for one in told],
        }
    )
    rows = keys.groupby("configuration_id").agg(
        source_id=("source_id", "first"), exam_group=("exam_group", "min")
    )
    values = keys.pivot_table("value", "configuration_id", "metric")
    configurations = {one.configuration.configuration_id: one.configuration for one in figures}
    features = features_of(Columns.of([configurations[one] for one in rows.index])).set_index(rows.index)
    rows = rows.assign(
        exam_column=None,
        population=features["population"],
        deliveries=features["deliveries"],
        **{target: values.get(target, pd.Series(float("nan"), rows.index)) for target in TARGETS},
    )
    return Data(rows, figures, 0, "small")


@pytest.fixture(scope="session")
def small_model(small_data):
    return TwinModel.fit(small_data)
