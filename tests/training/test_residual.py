import json

import numpy as np
import pytest

from training.kinds import Scale, distances
from training.residual import PRIOR, Residual
from twin.app.describing import flat_example
from twin.core.columns import Columns
from twin.core.configuration import Configuration

NOISE = 0.02
HIGHER = np.log(1.2)
SIZES = (256, 1024, 4096, 16384, 65536, 262144)
GROUPS = (1, 2, 4, 8)


def flow(**changes):
    return Configuration.from_flat(flat_example("message_flow") | changes)


MEASURED = Columns.of(
    [
        flow(message_bytes=size, execution_groups=groups, persistent=persistent)
        for persistent in (False, True)
        for size in SIZES
        for groups in GROUPS
    ]
)
BETWEEN = {"message_bytes": 2000, "execution_groups": 3}
OTHER_KIND = {
    "persistent": True, "node": "database", "database_operation": "update", "esql": "none", "os": "aix",
    "machine": "RS/6000", "log_disk": "ssa", "input_format": "mrm_cwf", "output_format": "mrm_cwf",
}  # fmt: skip


def runs(seed):
    return NOISE * np.random.default_rng(seed).normal(size=MEASURED.size)


def fitted(residuals, **fixed):
    found = Residual.fit(MEASURED, residuals, np.full(MEASURED.size, NOISE), **fixed)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def higher():
    """Persistent flows are a fifth faster than physics says, all of them."""
    return fitted(np.where(MEASURED.flag("persistent"), HIGHER, 0.0) + runs(1))


def prior_variance(residual):
    offset, local = np.exp(residual.parameters[:2])
    return offset**2 + local**2


def test_noise_alone_is_hardly_corrected():
    said = [fitted(runs(seed)).at(MEASURED)[0] for seed in range(10)]
    assert np.sqrt(np.mean(np.square(said))) < NOISE / 2


def test_noise_alone_is_found_to_be_noise():
    factors = [fitted(runs(seed)).noise_factor for seed in range(10)]
    assert np.mean(factors) == pytest.approx(1, abs=0.2)


def test_an_offset_of_a_kind_is_learned_for_all_of_it(higher):
    said, variance, _ = higher.at(Columns.of([flow(**BETWEEN, persistent=True)]))
    assert said[0] == pytest.approx(HIGHER, abs=NOISE)
    assert np.sqrt(variance[0]) < NOISE


def test_the_other_kind_keeps_what_was_measured_of_it(higher):
    said, _, _ = higher.at(Columns.of([flow(**BETWEEN, persistent=False)]))
    assert said[0] == pytest.approx(0, abs=NOISE)


def test_an_offset_is_not_carried_over_to_a_very_different_kind(higher):
    said, variance, _ = higher.at(Columns.of([flow(**BETWEEN, **OTHER_KIND)]))
    assert abs(said[0]) < HIGHER / 50
    assert variance[0] == pytest.approx(prior_variance(higher), rel=0.01)


def test_the_more_choices_differ_the_less_is_carried_over(higher):
    changed = [flow(**BETWEEN, **dict(list(OTHER_KIND.items())[:count])) for count in range(1, 6)]
    said, variance, _ = higher.at(Columns.of(changed))
    assert (np.diff(said) < 0).all()
    assert (np.diff(variance) > 0).all()


def test_far_from_all_rows_physics_is_left_alone(higher):
    said, variance, near = higher.at(Columns.of([Configuration.from_flat(flat_example("cluster"))]))
    assert said[0] == pytest.approx(0, abs=1e-3)
    assert variance[0] == pytest.approx(prior_variance(higher), rel=1e-3)
    assert not near[0]


@pytest.mark.parametrize(
    ("changes", "near"), [({}, True), ({"esql": "complex"}, False), ({"message_bytes": 10**9}, False)]
)
def test_near_is_a_row_of_the_same_kind_with_like_numbers(higher, changes, near):
    assert higher.at(Columns.of([flow(**BETWEEN | changes)]))[2].tolist() == [near]


@pytest.mark.parametrize("factor", [1.3, 1.5, 3.0])
def test_a_gross_outlier_does_not_bend_what_was_measured_beside_it(factor):
    clean = runs(0)
    wrong = clean.copy()
    wrong[21] = np.log(factor)
    bent = fitted(wrong).at(MEASURED)[0] - fitted(clean).at(MEASURED)[0]
    assert np.abs(np.delete(bent, 21)).max() < 2 * NOISE


def test_an_outlier_counts_for_less_than_its_neighbours():
    wrong = runs(0)
    wrong[21] = np.log(1.5)
    noise = fitted(wrong).noise
    assert noise[21] > 2 * np.delete(noise, 21).max()


def test_fewer_than_ten_rows_tell_nothing():
    def of(rows):
        return Residual.fit(MEASURED.only(np.arange(rows)), np.full(rows, HIGHER), np.full(rows, NOISE))

    assert of(9) is None
    assert of(10) is not None


def test_given_parameters_are_not_decided_anew():
    assert fitted(runs(1), parameters=PRIOR).parameters is PRIOR


def test_answers_survive_being_written_down(higher):
    back = Residual.from_plain(json.loads(json.dumps(higher.to_plain())))
    asked = Columns.of([flow(**BETWEEN), flow(**BETWEEN, **OTHER_KIND), flow(message_bytes=256)])
    for one, other in zip(higher.at(asked), back.at(asked), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_distances_count_choices_and_measure_numbers_in_spreads():
    ones = Columns.of([flow(), flow(persistent=True, esql="complex"), flow(execution_groups=8)])
    numbers, kinds = distances(ones, ones, Scale({"execution_groups": np.log(9 / 2)}))
    np.testing.assert_allclose(numbers, [[0, 0, 1], [0, 0, 1], [1, 1, 0]], atol=1e-12)
    np.testing.assert_array_equal(kinds, [[0, 2, 0], [2, 0, 2], [0, 2, 0]])
