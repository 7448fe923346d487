import numpy as np
import pandas as pd
import pytest

from training.encoding import FEATURES, encode, with_derived
from training.regression import ThroughputRegression
from twin.app.describing import flat_example
from twin.core.configuration import Configuration
from twin.core.tables import TARGETS, TRAINING_SET

SIZES = (256, 1024, 4096, 16384)


def training_rows():
    """A made-up broker: 20 us a message and 10 ns a byte, ten times slower when persistent."""
    rows = []
    for size in SIZES:
        for persistent in (False, True):
            for nodes in (0, 1, 2, 5):
                rate = 1 / ((20e-6 + 10e-9 * size + 50e-6 * nodes) * (10 if persistent else 1))
                changes = {"message_bytes": size, "persistent": persistent, "compute_nodes": nodes}
                rows.append(
                    Configuration.from_flat(flat_example("message_flow") | changes).flat()
                    | {"source_id": "s", "exam_group": f"{nodes}", "throughput_msgs_per_s": rate}
                )
    return with_derived(pd.DataFrame(rows, columns=TRAINING_SET.columns))


@pytest.fixture(scope="module")
def fitted():
    return ThroughputRegression.fit(training_rows(), table_version=3)


@pytest.fixture
def ask(fitted):
    def answer(**changes):
        request = flat_example("message_flow") | {"compute_nodes": 1} | changes
        return fitted[0].predict_flat(pd.DataFrame([request])).iloc[0]

    return answer


def test_targets_and_ids_are_no_features():
    names = {field.name for field in FEATURES}
    assert names.isdisjoint(
        {*TARGETS, "cpu_busy_pct", "configuration_id", "exam_group", "machine", "product"}
    )


def test_encoding_does_not_depend_on_the_rows_at_hand():
    rows = training_rows()
    assert list(encode(rows.head(1)).columns) == list(encode(rows).columns)


def test_more_bytes_are_never_faster(ask):
    rates = [ask(message_bytes=size)["value"] for size in (256, 512, 1024, 5000, 16384)]
    assert rates == sorted(rates, reverse=True)


def test_intervals_are_nested_around_the_value(ask):
    answer = ask()
    assert answer["lo90"] <= answer["lo50"] < answer["value"] < answer["hi50"] <= answer["hi90"]


def test_a_kind_that_was_never_measured_is_excused(ask):
    answer = ask(node="aggregation")
    assert answer["excuse"] == "no measurement has node = aggregation"
    assert np.isnan(answer["value"])


def test_a_number_beyond_the_measured_is_answered_with_a_warning(ask):
    answer = ask(message_bytes=10**6)
    assert not answer["in_domain"]
    assert answer["domain_reason"].startswith("message_bytes = 1e+06 (measured: 256 to 16384)")


def test_a_request_that_is_no_configuration_is_excused(ask):
    assert ask(cpus=-1)["excuse"].startswith("cpus:")


def test_answers_survive_saving(fitted, ask, tmp_path):
    fitted[0].save(tmp_path)
    loaded = ThroughputRegression.load(tmp_path)
    request = pd.DataFrame([flat_example("message_flow") | {"compute_nodes": 1}])
    pd.testing.assert_frame_equal(loaded.predict_flat(request), fitted[0].predict_flat(request))


def test_scores_are_of_groups_that_were_held_out(fitted):
    _, scores = fitted
    assert scores.n == len(SIZES) * 2 * 4
    assert 0 < scores.median_ape <= scores.p90_ape
