"""The twin as a model: on the hub and the cluster of the shipped figures, which are quickly fitted."""

from __future__ import annotations

import numpy as np
import pytest

from training.anchors import Anchored
from training.model import HYBRID, PREDICTORS, TwinModel
from twin.app.describing import flat_example
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.prediction import THROUGHPUT, Excuse, Prediction
from twin.systems.registry import BY_FAMILY

CPU = "cpu_ms_per_msg"


def hub(**changes):
    return Configuration.from_flat(flat_example("rules_hub") | changes)


def flow(**changes):
    return Configuration.from_flat(flat_example("message_flow") | changes)


def test_every_predictor_answers_with_nested_intervals(small_model):
    for predictor in PREDICTORS:
        (answer,) = small_model.predict([hub(queue_managers=6)], THROUGHPUT, predictor)
        assert isinstance(answer, Prediction)
        assert answer.predictor == predictor
        assert answer.lo90 <= answer.lo50 <= answer.value <= answer.hi50 <= answer.hi90


def test_answers_survive_saving(small_model, tmp_path):
    small_model.save(tmp_path)
    loaded = TwinModel.load(tmp_path)
    asked = Columns.of(
        [hub(queue_managers=n, disk_layout=d) for n in (1, 4, 9) for d in ("dedicated", "striped")]
    )
    for predictor in PREDICTORS:
        one, other = (model.answer(asked, THROUGHPUT, predictor) for model in (small_model, loaded))
        for end in ("value", "lo50", "hi50", "lo90", "hi90"):
            assert getattr(one, end).tolist() == getattr(other, end).tolist()


def test_saved_files_are_plain_json(small_model, tmp_path):
    small_model.save(tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json"}


def test_the_hybrid_is_physics_with_a_small_correction(small_model):
    asked = [hub(queue_managers=n) for n in (2, 5, 8)]
    physics, hybrid = (small_model.predict(asked, THROUGHPUT, one) for one in ("analytic", HYBRID))
    ratios = [one.value / other.value for one, other in zip(hybrid, physics, strict=True)]
    assert all(0.8 < ratio < 1.25 for ratio in ratios)
    assert any(abs(ratio - 1) > 1e-4 for ratio in ratios)


def test_no_more_flows_than_is_offered(small_model):
    highest, offered = small_model.predict([hub(), hub(offered_rate_msgs_per_s=50)])
    assert offered.value == pytest.approx(50)
    assert offered.hi90 <= 50
    assert offered.value < highest.value
    assert offered.utilisation != highest.utilisation


def test_an_offered_rate_beyond_the_highest_changes_nothing(small_model):
    highest, offered = small_model.predict([hub(), hub(offered_rate_msgs_per_s=1e6)])
    assert offered.value == pytest.approx(highest.value)


def test_a_column_outside_what_was_measured_is_told(small_model):
    (answer,) = small_model.predict([hub(rules_engines=4)])
    assert not answer.in_domain
    assert "rules_engines = 4" in answer.domain_reason


def test_what_the_physics_does_not_cover_is_excused(small_model):
    (answer,) = small_model.predict([hub(persistent=False)])
    assert isinstance(answer, Excuse)
    assert answer.excuse.startswith("persistent:")


def test_a_system_that_nobody_measured_is_judged_with_great_doubt(small_model):
    """The small model knows no message flow; the analytic priors do, and their interval says how well."""
    (answer,) = small_model.predict([flow()])
    assert not answer.in_domain
    assert "ever measured" in answer.domain_reason
    assert answer.hi90 / answer.lo90 > 3


def test_intervals_widen_with_the_distance_from_the_data(small_model):
    machine = {"machine": "another", "mhz": 800}
    near, far = small_model.predict([hub(), hub(**machine)])
    assert far.hi90 / far.lo90 > 1.5 * near.hi90 / near.lo90


def test_one_by_one_and_all_at_once_are_the_same(small_model):
    asked = [hub(queue_managers=n, rules_engines=e) for n in (1, 3, 7) for e in (1, 2)]
    together = small_model.predict(asked)
    assert [small_model.predict([one])[0].value for one in asked] == pytest.approx(
        [one.value for one in together], rel=1e-12
    )


def test_a_target_that_was_never_measured_is_excused_by_those_who_learn(small_model):
    for predictor in ("nearest", "regression"):
        (answer,) = small_model.predict([hub()], CPU, predictor)
        assert isinstance(answer, Excuse)


def anchored(model, anchors, rates):
    return Anchored(model, Columns.of(anchors), {THROUGHPUT: np.log(rates)})


def test_an_anchor_pulls_the_answers_on_its_machine(small_model):
    own = {"machine": "our box", "mhz": 600}
    anchor, asked = hub(**own, queue_managers=4), Columns.of([hub(**own, queue_managers=5)])
    before = small_model.answer(asked, THROUGHPUT, HYBRID)
    (predicted,) = small_model.predict([anchor])
    after = anchored(small_model, [anchor], [predicted.value * 0.7]).answer(asked, THROUGHPUT, HYBRID)
    assert 0.65 < after.value[0] / before.value[0] < 0.85
    assert after.hi90[0] / after.lo90[0] < before.hi90[0] / before.lo90[0]


def test_an_anchor_says_nothing_about_another_machine_or_system(small_model):
    own = {"machine": "our box", "mhz": 600}
    others = Columns.of([hub(), flow(**own)])
    before = small_model.answer(others, THROUGHPUT, HYBRID)
    after = anchored(small_model, [hub(**own)], [10.0]).answer(others, THROUGHPUT, HYBRID)
    assert after.value[1] == before.value[1]
    # a neighbour elsewhere shares what is not known of the demands, and that is little
    assert after.value[0] == pytest.approx(before.value[0], rel=0.1)


def test_anchors_leave_the_other_predictors_alone(small_model):
    asked = Columns.of([hub()])
    pulled = anchored(small_model, [hub()], [10.0])
    for predictor in ("analytic", "nearest", "regression"):
        assert (
            pulled.answer(asked, THROUGHPUT, predictor).value
            == small_model.answer(asked, THROUGHPUT, predictor).value
        )


def test_an_anchor_that_cannot_be_compared_is_told(small_model):
    reasons = anchored(small_model, [hub(), hub(persistent=False)], [10.0, 10.0]).unused(THROUGHPUT)
    assert reasons[0] is None
    assert reasons[1].startswith("persistent:")


def test_searching_and_answering_together_give_what_is_answered_alone(small_model):
    for offered in (None, 80.0):
        asked = Columns.of([hub(queue_managers=n, offered_rate_msgs_per_s=offered) for n in (1, 4, 9)])
        together = small_model.answer_with_physics(asked, THROUGHPUT)
        for answers, predictor in zip(together, (HYBRID, "analytic"), strict=True):
            assert answers.typed() == small_model.answer(asked, THROUGHPUT, predictor).typed()
    asked = Columns.of([hub(queue_managers=n) for n in (1, 4, 9)])
    _, expected = small_model.expected(BY_FAMILY["rules_hub"], asked, THROUGHPUT)
    assert np.exp(expected) == pytest.approx(small_model.answer(asked, THROUGHPUT).value)
