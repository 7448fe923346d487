"""The analytic predictor on the five systems as they are fitted on the shipped figures."""

import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twin.app.describing import flat_example
from twin.calibration.calibrating import coverage, forecasts
from twin.calibration.calibration import Calibration, calibration_of, residuals_of
from twin.calibration.fitting import fit
from twin.calibration.observations import Observations
from twin.calibration.predictor import AnalyticPredictor
from twin.core.configuration import FAMILIES, Configuration
from twin.core.prediction import Excuse, Prediction
from twin.systems.registry import BY_FAMILY, SYSTEMS

RATED = (
    "message_flow", "publication", "rules_hub", "fan_out", "loopback", "bank", "cluster", "request_reply",
    "generic",
)  # fmt: skip


@pytest.fixture(scope="module")
def fits(fitted, measured):
    families = {row.family for row in measured}
    return [fitted(system) for system in SYSTEMS if system.parameters and families & set(system.families)]


@pytest.fixture(scope="module")
def predictor(fits):
    return AnalyticPredictor({one.observations.system.name: calibration_of(one) for one in fits})


def example(family, **changes):
    return Configuration.from_flat(flat_example(family) | changes)


def test_every_family_belongs_to_one_system():
    assert set(BY_FAMILY) == set(FAMILIES)
    assert len(BY_FAMILY) == sum(len(system.families) for system in SYSTEMS)


def test_parameters_are_named_once_and_say_where_their_priors_come_from():
    for system in SYSTEMS:
        names = [one.name for one in system.parameters]
        assert len(names) == len(set(names))
        assert all(one.source and one.prior > 0 and one.spread > 0 for one in system.parameters)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_example_has_an_answer_or_an_excuse_for_every_metric(predictor, family):
    answers = predictor.metrics(example(family))
    assert any(isinstance(one, Prediction) for one in answers.values())
    for one in answers.values():
        if isinstance(one, Prediction):
            assert one.lo90 <= one.lo50 <= one.value <= one.hi50 <= one.hi90
            assert math.isfinite(one.value)


@pytest.mark.parametrize("family", RATED)
def test_a_rate_names_what_limits_it(predictor, family):
    (answer,) = predictor.predict([example(family)])
    assert answer.bottleneck
    busy = json.loads(answer.utilisation)
    assert all(0 <= share <= 1 + 1e-6 for share in busy.values())


def test_nearly_every_measured_rate_time_and_cpu_figure_is_predicted(predictor, measured):
    found = coverage(predictor, measured)
    assert found.figures > 1100
    assert found.predicted >= 0.98 * found.figures
    assert all(found.excuses.values())


def test_effective_parameters_are_at_most_half_the_points(fits):
    from twin.calibration.scores import family_scores

    for one in fits:
        for score in family_scores(one):
            assert score.interpolation or score.effective_parameters <= score.n / 2, score


def test_the_whole_machine_maxima_are_foretold_and_not_fitted(fits, measured):
    kept_out = {row.figure_id: row.value for row in measured if row.exam_group is None}
    assert {493, 597, 1182, 1954} <= set(kept_out.values())
    fitted_on = {row.figure_id for one in fits for row in one.observations.rows}
    assert not fitted_on & kept_out.keys()
    told = [one for one in forecasts(fits, measured) if one.title == "never fitted on"]
    assert {one.figure_id for one in told} == kept_out.keys()


def test_a_calibration_survives_being_written_down(fits):
    for one in fits:
        calibration = calibration_of(one)
        assert Calibration.model_validate_json(calibration.model_dump_json()) == calibration


def test_every_demand_has_an_origin(fits):
    for one in fits:
        for demand in calibration_of(one).demands:
            assert demand.prior_source
            assert demand.fitted_on
            assert demand.log_sd <= demand.prior_log_sd * (1 + 1e-6)


def test_a_component_that_no_row_has_is_an_excuse(measured):
    broker = BY_FAMILY["message_flow"]
    flows = [row for row in measured if row.family == "message_flow" and row.exam_group is not None]
    aggregating = [row for row in flows if row.configuration.workload.node == "aggregation"]
    others = [row for row in flows if row not in aggregating]
    without = AnalyticPredictor({"broker": calibration_of(fit(Observations.of(broker, others)))})
    answer, other = without.predict([aggregating[0].configuration, others[0].configuration])
    assert isinstance(answer, Excuse)
    assert "no measurement tells" in answer.excuse
    assert isinstance(other, Prediction)


@pytest.mark.parametrize(
    ("family", "changes", "field"),
    [
        ("publication", {"subscribers": 1_000_000}, "subscribers"),
        ("fan_out", {"subscribers": 1_000_000}, "subscribers"),
        ("message_flow", {"message_bytes": 2**30}, "message_bytes"),
        ("message_flow", {"cpus": 1024}, "cpus"),
        ("cluster", {"channel_pairs": 1_000_000}, "channel_pairs"),
        ("rules_hub", {"queue_managers": 1000}, "queue_managers"),
    ],
)
def test_what_lies_far_outside_is_an_excuse_that_names_the_field(predictor, family, changes, field):
    (answer,) = predictor.predict([example(family, **changes)])
    assert isinstance(answer, Excuse)
    assert answer.excuse.startswith(f"{field}: ")


def test_a_little_outside_is_told(predictor):
    (answer,) = predictor.predict([example("message_flow", message_bytes=100_000)])
    assert not answer.in_domain
    assert "message_bytes" in answer.domain_reason


def test_another_machine_is_less_certain(predictor):
    at_home = example("message_flow")
    faster = example("message_flow", machine="another", mhz=1800)
    unknown = example("message_flow", machine="another", mhz=None)
    known, moved, excused = predictor.predict([at_home, faster, unknown])
    assert moved.value > known.value
    assert moved.hi90 / moved.lo90 > known.hi90 / known.lo90
    assert "no rating in common" in excused.excuse


def test_an_offered_rate_is_answered_with_busy_processors(predictor):
    idle = predictor.metrics(example("message_flow", offered_rate_msgs_per_s=10.0))
    busy = predictor.metrics(example("message_flow", offered_rate_msgs_per_s=1e5))
    assert idle["throughput_msgs_per_s"].value == pytest.approx(10)
    assert idle["cpu_busy_pct"].value < busy["cpu_busy_pct"].value
    assert busy["throughput_msgs_per_s"].value < 1e5


def test_response_time_and_capacity_follow_from_every_network(predictor):
    quiet = predictor.metrics(example("message_flow", offered_rate_msgs_per_s=10.0))
    most = predictor.metrics(example("message_flow"))
    assert quiet["response_ms"].value == pytest.approx(most["response_ms"].value, rel=0.2)
    assert most["capacity_msgs_per_s"].value > most["throughput_msgs_per_s"].value
    stored = predictor.metrics(example("stored_object"))
    assert isinstance(stored["capacity_msgs_per_s"], Excuse)


def test_an_impossible_network_does_not_spoil_the_others(predictor):
    one = example("generic", memory_per_client_kb=0.0)
    other = example("generic", demand_cpu_ms=0.0, demand_serial_ms=0.0, demand_log_ms=0.0)
    answers = predictor.predict([one, other])
    assert isinstance(answers[0], Prediction)
    assert isinstance(answers[1], Excuse)


def test_residuals_are_told_in_standard_deviations(fits):
    for one in fits:
        rows = residuals_of(one, calibration_of(one))
        assert len(rows) == len(one.observations.rows)
        off = np.abs([deviations for _, _, deviations in rows])
        assert np.median(off) < 1.5


_SIZES = st.integers(0, 260_000)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    family=st.sampled_from(RATED),
    sizes=st.tuples(_SIZES, _SIZES),
    cpus=st.tuples(st.integers(1, 16), st.integers(1, 16)),
    persistent=st.booleans(),
)
def test_larger_messages_are_not_faster_and_more_processors_not_slower(
    predictor, family, sizes, cpus, persistent
):
    changes = {} if family == "generic" else {"persistent": persistent}
    small, large = (
        predictor.predict([example(family, message_bytes=size, **changes)])[0] for size in sorted(sizes)
    )
    if isinstance(small, Prediction) and isinstance(large, Prediction):
        assert large.value <= small.value * (1 + 1e-9)
    few, many = (predictor.predict([example(family, cpus=count, **changes)])[0] for count in sorted(cpus))
    if isinstance(few, Prediction) and isinstance(many, Prediction):
        assert many.value >= few.value * (1 - 1e-9)
