"""The exam on live data, on figures whose law is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from training.live_exam import ANY_AT_MOST, Answered, Paper, live_exam
from twin.core.prediction import THROUGHPUT, Excuse
from twin.harness.experiments import experiments
from twin.harness.measured import Measured
from twin.systems.messaging import SYSTEM
from twin.systems.model import Batch, Demands

NAMES = ("put_get", "window")


@dataclass
class Nats:
    name = "nats"
    product = "NATS"
    version = "2.15"


def measured(noise, seed=1, repeats=5):
    """A broker whose demands differ from what was believed, each run a little off."""
    chance = np.random.default_rng(seed)
    points = [one for name in NAMES for one in experiments()[name].points(name, Nats(), "exam")]
    values = {one.name: one.prior for one in SYSTEM.parameters}
    values |= {
        "operation_cpu": 0.06,
        "delay": 0.2,
        "force_ms[untold]": 0.7,
        "lock": 0.02,
        "cpu_per_kb": 0.002,
    }
    batch = Batch([one.configuration for one in points])
    rates = SYSTEM.evaluate(batch, Demands(values)).metrics[THROUGHPUT]
    return [
        Measured(
            point.experiment,
            point.configuration,
            {THROUGHPUT: (rate * np.exp(noise * chance.standard_normal(repeats))).tolist()},
        )
        for point, rate in zip(points, rates, strict=True)
    ]


@pytest.fixture(scope="module")
def papers():
    return live_exam(measured(noise=0.03))


def test_a_third_of_each_grid_is_learned_from_and_all_else_is_asked(papers):
    grids = {name: len(experiments()[name].columns("exam")) for name in NAMES}
    assert {(one.experiment, one.persistent): one.learned + len(one.answers) for one in papers} == {
        (name, persistent): size / 2 for name, size in grids.items() for persistent in (False, True)
    }
    for name, size in grids.items():
        assert 0 < sum(one.learned for one in papers if one.experiment == name) <= size / 3


def test_a_law_that_the_physics_can_tell_is_found_from_a_third(papers):
    for one in papers:
        assert one.passed, (one.experiment, one.errors)
        assert all(answer.answer.lo90 < answer.answer.hi90 for answer in one.answers)


def test_which_third_is_measured_does_not_depend_on_what_it_shows(papers):
    others = live_exam(measured(noise=0.3, seed=2))
    assert [
        {answer.point.configuration.configuration_id for answer in paper.answers} for paper in papers
    ] == [{answer.point.configuration.configuration_id for answer in paper.answers} for paper in others]


def paper(errors, repeats):
    (point, *_) = measured(noise=0.0)
    answers = []
    for error in errors:
        said = Excuse(target=THROUGHPUT, predictor="hybrid", excuse="never measured")
        one = Measured("put_get", point.configuration, {THROUGHPUT: repeats})
        answers.append(Answered(one, said) if error is None else _Said(one, error))
    return Paper("put_get", "NATS", False, 4, answers)


class _Said(Answered):
    def __init__(self, point, error):
        object.__setattr__(self, "point", point)
        object.__setattr__(self, "_error", error)

    @property
    def error_pct(self):
        return self._error


SURE, NOISY = [100.0, 101.0, 99.0, 100.5, 99.5], [100.0, 140.0, 70.0, 120.0, 80.0]


@pytest.mark.parametrize(
    ("errors", "repeats", "passed"),
    [
        ([9.0, 9.5, 19.0], SURE, True),
        ([9.0, 10.5, 19.0], SURE, False),
        ([9.0, 10.5, 19.0], NOISY, True),
        # one far off is one too many, however noisy the runs
        ([1.0, 1.0, ANY_AT_MOST + 0.1], NOISY, False),
        # to say nothing is not to pass
        ([1.0, None, 1.0], SURE, False),
    ],
)
def test_the_marks_are_those_that_were_stated(errors, repeats, passed):
    assert paper(errors, repeats).passed is passed
