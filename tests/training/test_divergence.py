"""The detector: how soon it finds a change, how often it finds one that is none, and what it remembers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from training.cusum import LEARNED, limit
from training.divergence import PERIODS_PER_FALSE_ALARM, REFERENCE, State, begun, renewed, updated
from training.model import TwinModel
from training.periods import NOISIEST, PROBES, Period, Probe, probed
from twin.app.describing import flat_example
from twin.calibration.calibration import believed
from twin.core.configuration import Configuration
from twin.systems.messaging import SYSTEM

NOISE = 0.1
SLOWED = math.log(0.7)


def period(at: int, offs, sd: float = NOISE, **changes: object) -> Period:
    probes = tuple(
        Probe(configuration_id=str(place), measured=math.exp(off), predicted=1.0, sd=sd)
        for place, off in enumerate(offs)
    )
    return Period(at=str(at), probes=tuple(one.model_copy(update=changes) for one in probes))


def played(offs, state: State | None = None, first: int = 0, sd: float = NOISE) -> State:
    """Until the first alarm, or all of it."""
    state = state or begun("a broker")
    for at, row in enumerate(offs, first):
        state = updated(state, period(at, row.tolist(), sd))
        if state.alarm:
            break
    return state


def quiet(chance, periods: int) -> np.ndarray:
    return NOISE * chance.standard_normal((periods, PROBES))


def slowed(chance, before: int = LEARNED, after: int = 3) -> np.ndarray:
    offs = quiet(chance, before + after)
    offs[before:] += SLOWED
    return offs


def alarm_share(noise, seeds: int, periods: int = 60) -> float:
    """Of brokers that never change, how many raise an alarm in so many periods after learning."""
    alarms = [
        played(noise(np.random.default_rng(seed), LEARNED + periods)).alarm is not None
        for seed in range(seeds)
    ]
    return sum(alarms) / seeds


@pytest.mark.parametrize(("height", "periods"), [(4.0, 168), (5.0, 465)])
def test_the_limit_is_the_one_in_the_tables(height: float, periods: float) -> None:
    assert limit(0.5, periods) == pytest.approx(height, abs=0.01)


def test_the_limit_agrees_with_siegmunds_approximation() -> None:
    height = limit(0.5, PERIODS_PER_FALSE_ALARM)
    times = 2 * 0.5 * (height + 1.166)
    assert (math.exp(times) - times - 1) / (2 * 0.5**2) / 2 == pytest.approx(
        PERIODS_PER_FALSE_ALARM, rel=0.02
    )


def test_standard_normal_numbers_raise_an_alarm_in_a_thousand_periods() -> None:
    chance, height, brokers, periods = np.random.default_rng(1), limit(REFERENCE, 1000.0), 4_000, 4_000
    rise, fall = np.zeros(brokers), np.zeros(brokers)
    alarms = np.zeros(brokers)
    for _ in range(periods):
        drawn = chance.standard_normal(brokers)
        rise, fall = np.maximum(rise + drawn - REFERENCE, 0), np.maximum(fall - drawn - REFERENCE, 0)
        over = np.maximum(rise, fall) > height
        alarms += over
        rise[over], fall[over] = 0, 0
    assert periods * brokers / alarms.sum() == pytest.approx(1000, rel=0.05)


def test_quiet_brokers_seldom_raise_an_alarm_in_sixty_periods() -> None:
    assert alarm_share(quiet, 500) <= 0.06


def test_heavy_tails_and_correlated_periods_raise_more_but_not_without_bound() -> None:
    def heavy(chance, periods: int) -> np.ndarray:
        return NOISE * chance.standard_t(5, (periods, PROBES)) / math.sqrt(5 / 3)

    def correlated(chance, periods: int) -> np.ndarray:
        offs = quiet(chance, periods)
        for at in range(1, periods):
            offs[at] = 0.3 * offs[at - 1] + math.sqrt(1 - 0.3**2) * offs[at]
        return offs

    assert alarm_share(heavy, 150) <= 0.12
    assert 0.1 <= alarm_share(correlated, 150) <= 0.3


@pytest.mark.parametrize("before", [LEARNED, 30])
def test_a_broker_slowed_by_a_third_is_found_within_three_periods(before: int) -> None:
    """Whatever the model says of its noise, right or half as much as it is."""
    for stated in (NOISE, NOISE / 2):
        found = [played(slowed(np.random.default_rng(seed), before), sd=stated) for seed in range(200)]
        # one that was found before it happened is a false alarm, not a late one
        fair = [one for one in found if one.alarm is None or int(one.alarm.found_at) >= before]
        assert sum(one.alarm is not None for one in fair) >= 0.99 * len(fair)


def test_an_alarm_says_since_when_and_by_how_much() -> None:
    found = [played(slowed(np.random.default_rng(seed), 20)).alarm for seed in range(100)]
    alarms = [one for one in found if one and int(one.found_at) >= 20]
    assert len(alarms) > 90
    assert {one.direction for one in alarms} == {"slower"}
    assert sum(abs(int(one.since) - 20) <= 1 for one in alarms) >= 0.9 * len(alarms)
    assert np.median([one.percent for one in alarms]) == pytest.approx(-30, abs=2)
    covered = sum(one.percent_lo90 <= -30 <= one.percent_hi90 for one in alarms) / len(alarms)
    assert 0.8 <= covered <= 0.97


def test_a_faster_broker_has_diverged_too() -> None:
    state = played(-slowed(np.random.default_rng(3)))
    assert state.alarm is not None
    assert state.alarm.direction == "faster"
    assert "faster since 8: +" in str(state.alarm)


def test_no_period_alone_raises_an_alarm() -> None:
    state = played(quiet(np.random.default_rng(4), 20))
    state = updated(state, period(20, [math.log(0.01)] * PROBES))
    assert state.status == "quiet"
    for at in range(21, 26):
        state = updated(state, period(at, [0.0] * PROBES))
    assert state.status == "quiet"


def test_one_wild_probe_hardly_counts() -> None:
    offs = quiet(np.random.default_rng(5), 16)
    calm, wild = played(offs), offs.copy()
    wild[12, 0] = -20.0
    assert played(wild).status == "quiet"
    assert played(wild).baseline.mean == pytest.approx(calm.baseline.mean, abs=0.3)


def test_a_change_that_one_probe_of_three_sees_is_found_in_time() -> None:
    offs = quiet(np.random.default_rng(6), 80)
    offs[20:, 0] += 2 * SLOWED
    state = played(offs)
    assert state.alarm is not None
    assert int(state.alarm.found_at) >= 20


def test_a_model_that_always_was_wrong_has_not_diverged() -> None:
    assert played(quiet(np.random.default_rng(7), 40) + math.log(1.3)).status == "quiet"


def test_a_detector_that_may_not_learn_goes_by_what_the_model_states() -> None:
    for seed in range(50):
        state = played(slowed(np.random.default_rng(seed), 0), begun("a broker", learned=0))
        assert state.alarm is not None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"measured": None}, "nothing was measured"),
        ({"predicted": None}, "the model has no answer"),
        ({"scatter": 2 * NOISIEST}, "the run scatters by 50%"),
    ],
)
def test_a_period_without_good_probes_does_not_count_and_says_why(changes, reason: str) -> None:
    before = played(quiet(np.random.default_rng(8), 12))
    after = updated(before, period(12, [SLOWED] * PROBES, **changes))
    assert after.latest is not None
    assert after.latest.left_out == reason
    assert after.left_out == 1
    assert after.model_copy(update={"left_out": 0, "latest": before.latest}) == before


def test_two_good_probes_make_a_period() -> None:
    before = played(quiet(np.random.default_rng(8), 12))
    good = period(12, [0.0] * PROBES).probes
    one_failed = Period(at="12", probes=(good[0], good[1].model_copy(update={"measured": None}), good[2]))
    assert updated(before, one_failed).counted == before.counted + 1
    assert updated(before, Period(at="12", probes=good[:1])).counted == before.counted


def test_a_diverged_broker_stays_so_and_is_told_better_with_every_period() -> None:
    chance = np.random.default_rng(9)
    first = played(slowed(chance, 20))
    assert first.alarm is not None
    later = first
    for at in range(23, 30):
        later = updated(later, period(at, (quiet(chance, 1)[0] + SLOWED).tolist()))
    assert later.status == "diverged"
    assert later.alarm is not None
    assert (later.alarm.since, later.alarm.found_at) == (first.alarm.since, first.alarm.found_at)
    assert later.alarm.periods == first.alarm.periods + 7
    width, before = (one.percent_hi90 - one.percent_lo90 for one in (later.alarm, first.alarm))
    assert width < before


def test_a_broker_that_has_come_back_is_told_by_a_shrinking_shift() -> None:
    chance = np.random.default_rng(15)
    state = played(slowed(chance, 20))
    for at in range(23, 43):
        state = updated(state, period(at, quiet(chance, 1)[0].tolist()))
    assert state.status == "diverged"
    assert state.alarm is not None
    assert -10 < state.alarm.percent < 2


def test_after_recalibration_what_is_usual_is_learned_anew() -> None:
    state = renewed(played(slowed(np.random.default_rng(10))))
    assert (state.status, state.alarm, state.baseline.periods) == ("learning", None, 0)
    state = played(quiet(np.random.default_rng(11), LEARNED), state, first=50)
    assert state.status == "quiet"
    state = played(quiet(np.random.default_rng(12), 3) + SLOWED, state, first=60)
    assert state.alarm is not None
    assert state.alarm.since == "60"


def test_a_state_survives_json_in_any_status() -> None:
    state = begun("a broker")
    for at, row in enumerate(slowed(np.random.default_rng(13), 12)):
        again = State.model_validate_json(state.model_dump_json())
        assert again == state
        state, again = (updated(one, period(at, row.tolist())) for one in (state, again))
        assert again == state
    assert state.status == "diverged"


def test_noise_is_learned_as_a_multiple_of_what_is_stated() -> None:
    state = played(quiet(np.random.default_rng(14), 60), sd=NOISE / 2)
    assert state.noise_factor == pytest.approx(2, rel=0.25)


def test_rates_are_put_beside_what_the_model_says() -> None:
    model = TwinModel({SYSTEM.name: believed(SYSTEM)}, {}, {}, {}, 0)
    some = [
        Configuration.from_flat(flat_example("point_to_point") | {"producers": sent, "consumers": 0})
        for sent in (0, 1, 2)
    ]
    nobody, failed, good = probed(model, some, [100.0, None, 200.0], [None, None, 0.05])
    assert nobody.flaw == "the model has no answer"
    assert failed.flaw == "nothing was measured"
    assert good.flaw is None
    assert good.predicted == pytest.approx(model.physics.predict(some)[2].value)
    assert good.sd is not None
    assert good.sd > 0.05
