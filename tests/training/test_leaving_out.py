"""Algebra in place of refits: how near it comes to a fit that never saw the rows."""

import numpy as np
import pytest

from training.leaving_out import left_out
from training.residual import PRIOR, Residual
from twin.calibration.calibration import calibration_of, row_noise
from twin.calibration.fitting import fit
from twin.calibration.observations import Observations
from twin.core.columns import Columns
from twin.systems.hub import SYSTEM
from twin.systems.model import Batch

RATE = "throughput_msgs_per_s"
# the groups whose errors grow most when they are left out
LEFT_OUT = ("Figure 5", "Figure 7", "Figure 12")


@pytest.fixture(scope="module")
def hub(fitted):
    return fitted(SYSTEM)


@pytest.fixture(scope="module")
def groups(hub):
    return np.array([row.exam_group for row in hub.observations.rows], dtype=object)


@pytest.fixture(scope="module")
def rates(hub):
    return np.flatnonzero([row.metric == RATE for row in hub.observations.rows])


@pytest.fixture(scope="module")
def noise(hub, rates):
    return row_noise(hub.observations, calibration_of(hub))[rates]


@pytest.fixture(scope="module")
def residual(hub, rates, noise):
    columns = Columns.of([hub.observations.rows[at].configuration for at in rates])
    return Residual.fit(columns, hub.residuals[rates], noise, PRIOR)


@pytest.fixture(scope="module", params=LEFT_OUT)
def compared(request, hub, groups, rates, noise):
    """Errors on a group as told without fitting again, and of a fit without it."""
    told, _ = left_out(hub, rates, None, np.ones(len(rates)), noise, groups)
    rows = hub.observations.rows
    rest = fit(Observations(SYSTEM, [row for row in rows if row.exam_group != request.param]))
    gone = [row for row in rows if row.exam_group == request.param and row.metric == RATE]
    said = SYSTEM.evaluate(Batch([row.configuration for row in gone]), rest.demands).metrics[RATE]
    return told[groups[rates] == request.param], np.log([row.value for row in gone]) - np.log(said)


def test_errors_are_those_of_a_fit_without_the_group(compared):
    told, refitted = compared
    assert np.corrcoef(told, refitted)[0, 1] > 0.8


def test_errors_are_as_large_as_those_of_a_fit_without_the_group(compared):
    told, refitted = compared
    assert 1 / 1.5 < np.abs(told).mean() / np.abs(refitted).mean() < 1.5


def test_errors_are_larger_than_what_the_fit_leaves_over(hub, groups, rates, noise):
    told, _ = left_out(hub, rates, None, np.ones(len(rates)), noise, groups)
    assert np.abs(told).mean() > np.abs(hub.residuals[rates]).mean()


def test_standard_deviations_are_larger_than_the_noise(hub, groups, rates, noise):
    _, deviations = left_out(hub, rates, None, np.ones(len(rates)), noise, groups)
    assert (deviations > noise).all()


def test_the_more_is_missing_the_larger_is_the_doubt(hub, groups, rates, noise):
    _, one_by_one = left_out(hub, rates, None, np.ones(len(rates)), noise, np.arange(len(groups)))
    _, by_group = left_out(hub, rates, None, np.ones(len(rates)), noise, groups)
    assert (by_group >= one_by_one * (1 - 1e-9)).all()


def test_where_all_rows_are_missing_the_priors_foretell(hub, groups, rates, noise):
    told, deviations = left_out(hub, rates, None, np.ones(len(rates)), noise, np.zeros(len(groups)))
    prior = np.log([one.prior for one in SYSTEM.parameters])
    spread = np.array([one.spread for one in SYSTEM.parameters])
    slopes = hub.sensitivity[rates]
    np.testing.assert_allclose(told, hub.residuals[rates] + slopes @ (hub.logs - prior), rtol=1e-6)
    np.testing.assert_allclose(deviations**2, ((slopes * spread) ** 2).sum(axis=1) + noise**2, rtol=1e-6)


def test_a_correction_from_the_other_rows_of_a_group_is_lost_with_it(hub, groups, rates, noise, residual):
    _, one_by_one = left_out(hub, rates, residual, np.ones(len(rates)), noise, np.arange(len(groups)))
    _, by_group = left_out(hub, rates, residual, np.ones(len(rates)), noise, groups)
    assert by_group.mean() > 1.05 * one_by_one.mean()


def test_a_correction_is_one_more_thing_to_be_unsure_of(hub, groups, rates, residual):
    # the same noise in both, so that nothing but the correction differs
    _, without = left_out(hub, rates, None, np.ones(len(rates)), residual.noise, groups)
    _, with_one = left_out(hub, rates, residual, np.ones(len(rates)), residual.noise, groups)
    assert (with_one > without).all()
