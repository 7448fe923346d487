"""What the reports advise, and what the twin says of it."""

import pytest

from twin.app.advising import advise, remedies
from twin.app.answering import Twin
from twin.app.describing import flat_example
from twin.core.configuration import Configuration
from twin.core.prediction import Prediction

HUB = flat_example("rules_hub") | {"log_disk": "fc_al", "disk_layout": "striped", "rules_engines": 2}
CLUSTER = flat_example("cluster")


@pytest.fixture(scope="module")
def twin(small_model):
    return Twin(small_model.physics, small_model)


def advised(twin, flat):
    return advise(twin, Configuration.from_flat(flat))


def named(found, words):
    return next(one for one in found.advice if words in one.remedy.name)


def test_a_gain_is_that_of_the_changed_configuration(twin, small_model):
    found = advised(twin, HUB)
    assert found.bottleneck == "log"
    cached = named(found, "non-volatile cache")
    before, after = small_model.predict(
        [Configuration.from_flat(HUB), Configuration.from_flat(HUB | {"log_disk": "cached"})]
    )
    assert cached.change == {"log_disk": "cached"}
    assert (cached.before, cached.after) == (before, after)
    assert cached.gain_pct == pytest.approx(100 * (after.value / before.value - 1))


def test_what_brings_most_comes_first_and_what_cannot_be_told_last(twin):
    gains = [one.gain_pct for one in advised(twin, HUB).advice]
    told = [gain for gain in gains if gain is not None]
    assert gains == sorted(told, reverse=True) + [None] * (len(gains) - len(told))


def test_what_is_done_already_is_no_advice(twin):
    assert not any("cache" in one.remedy.name for one in advised(twin, HUB | {"log_disk": "cached"}).advice)


def test_a_remedy_without_a_column_says_that_the_twin_cannot_tell(twin):
    flat = flat_example("message_flow") | {"persistent": True}
    dedicated = named(advised(twin, flat), "dedicated disks")
    assert dedicated.change is None
    assert "no column" in dedicated.excuse
    assert dedicated.remedy.sources


def test_a_remedy_of_recovery_is_measured_by_the_time_it_takes(twin):
    trusted = named(advised(twin, CLUSTER), "Trusted channels")
    assert isinstance(trusted.after, Prediction)
    assert trusted.after.target == "channel_recovery_s"
    assert trusted.after.value < trusted.before.value
    assert trusted.gain_pct > 0


def test_an_offered_rate_does_not_hide_a_gain(twin):
    found = advised(twin, HUB | {"offered_rate_msgs_per_s": 10.0})
    assert named(found, "non-volatile cache").gain_pct > 1


def test_what_has_no_rate_has_no_bottleneck_and_no_advice(twin):
    found = advised(twin, flat_example("stored_object"))
    assert found.bottleneck is None
    assert found.advice == ()


def test_every_remedy_of_the_file_can_be_read():
    assert len(remedies()) > 20
