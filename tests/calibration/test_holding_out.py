"""No answer comes from a fit that has seen the configuration."""

from dataclasses import replace

import pytest

from training import splits
from twin.calibration.fitting import fit
from twin.calibration.holding_out import FOLDS, fold_of, held_out
from twin.calibration.observations import Observations
from twin.systems.hub import SYSTEM as HUB

RATE = "throughput_msgs_per_s"


@pytest.fixture(scope="module")
def hub(measured):
    return [one for one in measured if one.source_id == "mqsi-v11-solaris" and one.exam_group]


@pytest.fixture(scope="module")
def asked(hub):
    return next(one.configuration for one in hub if one.metric == RATE)


def absurd(rows, configuration):
    """What was measured of it a thousandfold, all its metrics and both boxes."""
    return [
        replace(one, value=one.value * 1000) if one.configuration == configuration else one for one in rows
    ]


@pytest.fixture(scope="module")
def said(hub, asked):
    (answer,) = held_out(hub, [(asked, RATE)])
    return answer


def test_an_absurd_figure_does_not_move_its_own_answer(hub, asked, said):
    (answer,) = held_out(absurd(hub, asked), [(asked, RATE)])
    assert answer == said


def test_it_would_move_an_answer_that_had_seen_it(hub, asked):
    """What is held out is worth holding out."""
    before, after = (fit(Observations.of(HUB, rows)) for rows in (hub, absurd(hub, asked)))
    assert max(abs(before.logs - after.logs)) > 0.01


def test_the_answer_is_near_what_was_measured_and_has_an_interval(hub, asked, said):
    value = next(one.value for one in hub if one.configuration == asked and one.metric == RATE)
    assert said.value == pytest.approx(value, rel=0.25)
    assert said.lo90 < said.value < said.hi90
    assert said.excuse is None


def test_what_the_physics_does_not_tell_is_an_excuse(hub, asked):
    workload = asked.workload.model_copy(update={"message_bytes": 50_000_000})
    far = asked.model_copy(update={"workload": workload})
    answers = held_out(hub, [(asked, "buffer_bytes"), (far, RATE)])
    assert {one.metric: one.value for one in answers} == {"buffer_bytes": None, RATE: None}
    reasons = {one.metric: one.excuse for one in answers}
    assert reasons["buffer_bytes"] == "the model of hub does not tell buffer_bytes"
    assert "far beyond what was measured" in reasons[RATE]


def test_the_exam_leaves_out_the_same_configurations():
    assert splits.fold_of is fold_of
    assert {fold_of(str(one)) for one in range(100)} == set(range(FOLDS))


def test_progress_is_told_fold_by_fold(hub):
    told = []
    assert held_out(hub, [], lambda done, of: told.append((done, of))) == []
    assert told == [(done, FOLDS) for done in range(1, FOLDS + 1)]
