import numpy as np
import pytest

from training.conformal import NORMAL, Reach


def test_quantiles_count_the_row_to_come():
    # half and nine tenths of 101, and not of 100
    assert Reach.of(np.arange(1.0, 101.0)) == Reach(51.0, 91.0)


def test_the_order_and_the_sign_of_errors_do_not_matter():
    errors = np.random.default_rng(1).normal(size=50)
    assert Reach.of(-errors[::-1]) == Reach.of(errors)


def test_twenty_errors_are_enough_to_tell_a_tenth():
    assert Reach.of(np.arange(1.0, 21.0)) == Reach(11.0, 19.0)


def test_fewer_than_twenty_errors_are_taken_for_normal():
    assert Reach.of(np.full(19, 7.0)) == NORMAL


def test_what_could_not_be_foretold_is_no_error():
    known = np.arange(1.0, 100.0)
    assert Reach.of(np.concatenate([known, [np.nan, np.inf]])) == Reach.of(known)
    assert Reach.of(np.concatenate([np.full(19, 7.0), [np.nan]])) == NORMAL


def test_normal_errors_reach_as_far_as_tables_say():
    assert NORMAL.inner == pytest.approx(0.6745, abs=1e-4)
    assert NORMAL.outer == pytest.approx(1.6449, abs=1e-4)


def test_few_parts_reach_farther_than_many():
    errors = np.abs(np.random.default_rng(1).normal(size=500))
    few, some, many = (Reach.of(errors, parts) for parts in (5, 20, 200))
    assert few.inner > some.inner > many.inner
    assert few.outer > some.outer > many.outer


def test_each_row_a_part_is_as_good_as_no_parts():
    errors = np.abs(np.random.default_rng(1).normal(size=199))
    assert Reach.of(errors, 199) == Reach.of(errors)


def test_very_few_parts_do_not_reach_for_the_largest_error():
    assert Reach.of(np.arange(1.0, 101.0), 1).outer == 95.0


@pytest.mark.parametrize(
    "draw",
    [
        lambda random: random.normal(size=201),
        lambda random: random.standard_t(2, size=201),
        lambda random: random.exponential(size=201),
    ],
    ids=["normal", "heavy tails", "skewed"],
)
def test_nine_new_rows_in_ten_lie_within_the_outer_reach(draw):
    random = np.random.default_rng(7)
    inside = []
    for _ in range(4000):
        errors = np.abs(draw(random))
        reach = Reach.of(errors[:-1])
        inside.append((errors[-1] <= reach.inner, errors[-1] <= reach.outer))
    inner, outer = np.mean(inside, axis=0)
    # a standard error of the share is 0.5 points, and 0.8 for the inner reach
    assert outer == pytest.approx(0.9, abs=0.02)
    assert inner == pytest.approx(0.5, abs=0.03)


def test_the_wider_of_two_reaches_is_taken_at_each_level():
    assert Reach(1.0, 4.0).at_least(Reach(2.0, 3.0)) == Reach(2.0, 4.0)
