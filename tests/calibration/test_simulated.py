"""The simulated predictor beside the formula whose network it plays."""

from __future__ import annotations

import numpy as np
import pytest

from twin.app.describing import flat_example
from twin.calibration.calibration import calibration_of
from twin.calibration.predictor import AnalyticPredictor
from twin.calibration.simulated import SimulatedPredictor
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.prediction import Excuse, Prediction
from twin.systems import broker, cluster, hub, pubsub

SYSTEMS = (broker.SYSTEM, hub.SYSTEM, pubsub.SYSTEM, cluster.SYSTEM)


@pytest.fixture(scope="module")
def analytic(fitted) -> AnalyticPredictor:
    return AnalyticPredictor({one.name: calibration_of(fitted(one)) for one in SYSTEMS}, 7)


@pytest.fixture(scope="module")
def simulated(analytic) -> SimulatedPredictor:
    return SimulatedPredictor(analytic)


def configured(family: str, **values: object) -> Configuration:
    return Configuration.from_flat(flat_example(family) | values)


@pytest.mark.parametrize("metric", ["throughput_msgs_per_s", "cpu_ms_per_msg", "cpu_busy_pct", "response_ms"])
def test_measured_configurations_are_answered_as_by_the_formula(analytic, simulated, measured, metric):
    some = [one.configuration for one in measured if one.metric == "throughput_msgs_per_s"][::15]
    formula, played = (one.predict(some, metric) for one in (analytic, simulated))
    gaps = []
    for one, other in zip(formula, played, strict=True):
        assert isinstance(one, Prediction) == isinstance(other, Prediction)
        if isinstance(one, Prediction) and isinstance(other, Prediction):
            assert (other.predictor, other.table_version) == ("simulated", 7)
            assert (other.bottleneck, other.in_domain) == (one.bottleneck, one.in_domain)
            assert other.lo90 < other.value < other.hi90
            gaps.append(abs(other.value / one.value - 1))
    assert np.median(gaps) < 0.02
    assert np.mean(gaps) < 0.05


def test_one_question_and_many_get_the_same_answer(simulated):
    asked = [configured("rules_hub", queue_managers=count) for count in (1, 3, 5)]
    together = simulated.predict(asked)
    assert together == [simulated.predict([one])[0] for one in asked]


def test_what_the_formula_has_an_excuse_for_has_the_same_excuse(analytic, simulated):
    asked = configured("rules_hub", persistent=False)
    excuses = [one.predict([asked])[0] for one in (analytic, simulated)]
    assert all(isinstance(one, Excuse) for one in excuses)
    assert excuses[0].excuse == excuses[1].excuse


def test_the_offered_rate_decides_the_response_time(simulated):
    light, heavy = (
        simulated.predict([configured("rules_hub", offered_rate_msgs_per_s=rate)], "response_ms")[0].value
        for rate in (20.0, 200.0)
    )
    assert light < heavy


def test_recovery_is_a_storm_played_out_and_none_is_an_excuse(simulated):
    metric = "channel_recovery_s"
    small = simulated.predict([configured("cluster", channel_pairs=1000)], metric)[0]
    assert small.value == pytest.approx(141, rel=0.25)
    never = simulated.predict([configured("cluster", channel_pairs=1000, suppressed_messages=0)], metric)[0]
    assert "writing their errors" in never.excuse


def test_what_the_simulator_does_not_tell_is_an_excuse(simulated):
    told = simulated.predict([configured("rules_hub")], "io_wait_pct")[0]
    assert told.excuse == "the simulator does not tell io_wait_pct"


def test_a_batch_of_columns_is_answered_in_its_order(simulated):
    asked = [
        configured("cluster"),
        configured("fan_out"),
        configured("rules_hub"),
        configured("message_flow"),
    ]
    answers = simulated.answer(Columns.of(asked), "throughput_msgs_per_s").typed()
    assert [one.value for one in answers] == [simulated.predict([one])[0].value for one in asked]
