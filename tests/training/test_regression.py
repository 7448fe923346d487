"""The regressor on a made-up broker: 20 us a message and 10 ns a byte, ten times slower when persistent."""

from __future__ import annotations

import numpy as np
import pytest

from training.encoding import FEATURES, encode, features_of
from training.hyperparameters import GRID, shipped
from training.regression import Regression
from twin.app.describing import flat_example
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.prediction import THROUGHPUT
from twin.core.tables import TARGETS

SIZES = (256, 1024, 4096, 16384)


def configuration(**changes):
    return Configuration.from_flat(flat_example("message_flow") | {"compute_nodes": 1} | changes)


@pytest.fixture(scope="module")
def rows():
    found, logarithms, groups = [], [], []
    for size in SIZES:
        for persistent in (False, True):
            for nodes in (0, 1, 2, 5):
                seconds = (20e-6 + 10e-9 * size + 50e-6 * nodes) * (10 if persistent else 1)
                found.append(configuration(message_bytes=size, persistent=persistent, compute_nodes=nodes))
                logarithms.append(-np.log(seconds))
                groups.append(str(nodes))
    return Columns.of(found), np.array(logarithms), groups


@pytest.fixture(scope="module")
def fitted(rows):
    return Regression.fit(*rows, THROUGHPUT, shipped())


def test_targets_and_ids_are_no_features():
    names = {field.name for field in FEATURES}
    assert names.isdisjoint(
        {*TARGETS, "cpu_busy_pct", "configuration_id", "exam_group", "machine", "product"}
    )


def test_encoding_does_not_depend_on_the_rows_at_hand(rows):
    features = features_of(rows[0])
    assert list(encode(features.head(1)).columns) == list(encode(features).columns)


def test_more_bytes_are_never_faster(fitted):
    sizes = (256, 512, 1024, 5000, 16384)
    rates, _, _ = fitted.at(Columns.of([configuration(message_bytes=size) for size in sizes]))
    assert rates.tolist() == sorted(rates, reverse=True)


def test_a_kind_that_was_never_measured_is_excused(fitted):
    _, excuses, _ = fitted.at(Columns.of([configuration(node="aggregation")]))
    assert excuses.tolist() == ["no measurement has node = aggregation"]


def test_a_number_beyond_the_measured_is_answered_with_a_warning(fitted):
    _, excuses, reasons = fitted.at(Columns.of([configuration(message_bytes=10**6)]))
    assert excuses.tolist() == [None]
    assert reasons[0].startswith("message_bytes = 1e+06 (measured: 256 to 16384)")


def test_held_out_errors_are_those_of_groups_it_had_not_seen(fitted, rows):
    assert len(fitted.held_out) == len(rows[1])
    seen = fitted.at(rows[0])[0] - rows[1]
    assert np.abs(fitted.held_out).mean() > 2 * np.abs(seen).mean()


def test_answers_survive_saving(fitted, rows, tmp_path):
    fitted.save(tmp_path, "rate")
    assert Regression.load(tmp_path, "rate").at(rows[0])[0].tolist() == fitted.at(rows[0])[0].tolist()


def test_the_shipped_hyperparameters_are_among_those_a_search_looks_at():
    assert all(shipped()[name] in values for name, values in GRID.items())
