"""A hub of two boxes, one of which fails; and the rates of failed-over hubs against what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from twin.calibration.fitting import fit
from twin.calibration.observations import Observations
from twin.core.configuration import Configuration
from twin.queueing.network import BadNetwork, Network, cpu
from twin.simulation.failover import fail_over
from twin.simulation.playing import model_of
from twin.simulation.running import Simulated, simulate
from twin.systems.hub import SYSTEM
from twin.systems.model import Batch

ALONE, TOGETHER = Network([cpu(0.01, 4)], 8), Network([cpu(0.01, 4)], 16)


def boxes(own: float, takeover: float = 30.0, seed: int = 1):
    """Each box does 400 messages a second."""
    return fail_over(model_of(ALONE, 0, own), model_of(TOGETHER, 0, 2 * own), takeover, 400 - 2 * own, seed)


@pytest.mark.parametrize("own", [80, 150])
def test_the_backlog_is_worked_off_by_what_the_other_box_has_left(own):
    found = boxes(own)
    assert found.backlog.max() == pytest.approx(own * 30, rel=0.05)
    assert found.normal_again == pytest.approx(30 + own * 30 / (400 - 2 * own), rel=0.1)
    assert found.growth == 0
    before, drained = found.messages[10:60].mean(), found.messages[95:100].mean()
    assert before == pytest.approx(2 * own, rel=0.03)
    assert drained == pytest.approx(400, rel=0.05)


def test_nobody_is_served_for_the_failed_box_until_it_is_taken_over():
    found = boxes(100)
    assert found.messages[61:90].mean() == pytest.approx(100, rel=0.05)
    # who came first after the failure has waited longest
    assert np.nanmax(found.response_p95) == pytest.approx(30, rel=0.1)


def test_a_load_that_one_box_cannot_carry_never_becomes_normal():
    found = boxes(220)
    assert found.normal_again is None
    assert found.growth == pytest.approx(40, rel=0.1)


def test_a_takeover_of_no_time_is_hardly_seen():
    assert boxes(100, takeover=0).normal_again == pytest.approx(0, abs=2)


@pytest.mark.parametrize("takeover", [-1, np.nan, 1e9])
def test_an_impossible_takeover_is_refused(takeover):
    with pytest.raises(BadNetwork, match="takeover"):
        boxes(100, takeover)


def test_failed_over_hubs_are_known_from_normal_operation_as_well_as_by_the_formula(measured):
    """Fitted on normal operation alone: the simulated rates of failed-over hubs are no worse."""
    rows = [
        one for one in measured
        if one.exam_group is not None and one.source_id == "mqsi-v11-solaris"
    ]  # fmt: skip
    normal = [one for one in rows if not one.configuration.flat()["failed_over"]]
    failed = [
        one
        for one in rows
        if one.configuration.flat()["failed_over"] and one.metric == "throughput_msgs_per_s"
    ]
    assert len(failed) == 50
    demands = fit(Observations.of(SYSTEM, normal)).demands
    configurations: list[Configuration] = list(
        {one.configuration.configuration_id: one.configuration for one in failed}.values()
    )
    solution = SYSTEM.evaluate(Batch(configurations), demands).solution
    assert solution is not None
    errors: dict[str, list[float]] = {"formula": [], "simulated": []}
    for at, configuration in enumerate(configurations):
        found = simulate(model_of(solution.network, at), runs=4, messages=10_000)
        assert isinstance(found, Simulated)
        for one in failed:
            if one.configuration == configuration:
                errors["formula"].append(abs(solution.throughput[at] / one.value - 1))
                errors["simulated"].append(abs(found.throughput.value / one.value - 1))
    assert np.mean(errors["simulated"]) <= np.mean(errors["formula"])
