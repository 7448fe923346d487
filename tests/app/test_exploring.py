"""What if: all predictors, response times, and where the limit changes."""

import json

import pytest

from twin.app.answering import Twin
from twin.app.asking import Variation, varied
from twin.app.describing import flat_example
from twin.app.exploring import explore
from twin.app.telling import told_exploration
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.prediction import THROUGHPUT, Excuse

HUB = flat_example("rules_hub")
GENERIC = flat_example("generic")


@pytest.fixture(scope="module")
def twin(small_model):
    return Twin(small_model.physics, small_model)


def explored(twin, flat, *variations, metric=THROUGHPUT, predictors=()):
    base = Configuration.from_flat(flat)
    return explore(twin, varied(base, [Variation(*one) for one in variations]), metric, predictors)


def limit_at(twin, flat):
    return twin.physics.limits(Columns.of_rows([flat]))[0]


def test_every_predictor_answers_as_it_does_alone(twin, small_model):
    seen = explored(twin, HUB, ("queue_managers", (1, 3, 5)))
    assert list(seen.points[0].answers) == ["hybrid", "analytic", "regression", "nearest"]
    for point in seen.points:
        asked = [Configuration.from_flat(point.flat)]
        for name, answer in point.answers.items():
            # one row and three are added up in another order on some processors
            alone = small_model.predict(asked, THROUGHPUT, name)[0]
            for field, told in alone.model_dump().items():
                same = pytest.approx(told, rel=1e-9) if isinstance(told, float) else told
                assert getattr(answer, field) == same


def test_a_metric_that_nobody_learns_is_told_by_physics_alone(twin):
    seen = explored(twin, HUB, ("queue_managers", (1, 3)), metric="cpu_idle_pct")
    assert list(seen.points[0].answers) == ["analytic"]


def test_the_response_time_is_that_of_the_offered_rate(twin, small_model):
    loaded, full = (
        explored(twin, HUB | load, ("queue_managers", (5,))).points[0].response_ms
        for load in ({"offered_rate_msgs_per_s": 50.0}, {})
    )
    assert loaded < full
    alone = small_model.physics.predict(
        [Configuration.from_flat(HUB | {"offered_rate_msgs_per_s": 50.0})], "response_ms"
    )[0]
    assert loaded == pytest.approx(alone.value)


@pytest.mark.parametrize(
    ("flat", "field", "values"),
    [
        (HUB, "queue_managers", (1, 10)),
        (HUB | {"log_disk": "fc_al"}, "cpus", (1, 16)),
        (GENERIC, "demand_log_ms", (0.01, 5.0)),
        (GENERIC, "clients", (1, 1000)),
    ],
)
def test_a_turn_is_the_first_value_with_another_limit(twin, flat, field, values):
    (turn, *_) = explored(twin, flat, (field, values)).turns
    step = 1 if isinstance(values[0], int) else 0.002 * (values[1] - values[0])
    assert limit_at(twin, flat | {field: turn.at}) == turn.after
    assert limit_at(twin, flat | {field: type(values[0])(turn.at - step)}) == turn.before


def test_a_second_field_has_turns_of_its_own(twin):
    seen = explored(twin, GENERIC, ("clients", (1, 1000)), ("cpus", (1, 16)))
    at = {turn.others["cpus"]: turn.at for turn in seen.turns}
    assert at.keys() == {1, 16}
    assert at[1] < at[16]
    rows = told_exploration(seen)
    # each at the first point beyond it, on its own line
    assert [row["cpus"] for row in rows if row["turns"]] == [1, 16]


def test_choices_have_no_turns(twin):
    assert explored(twin, HUB, ("disk_layout", ("dedicated", "striped"))).turns == ()


def test_an_excused_point_is_told_and_does_not_disturb_the_others(twin):
    seen = explored(twin, HUB, ("persistent", (True, False)))
    assert [isinstance(point.answer, Excuse) for point in seen.points] == [False, True]
    rows = told_exploration(seen)
    assert "persistent" in rows[1]["excuse"]
    json.dumps(rows, allow_nan=False)


def test_played_out_instead(twin):
    seen = explored(twin, GENERIC, ("clients", (4,)), predictors=("simulated",))
    assert list(seen.points[0].answers) == ["simulated"]
