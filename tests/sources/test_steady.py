"""Where a run is steady, what it amounts to, and whether it is believed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.sources.harness.steady import steady_state


def samples(rates, **columns):
    return pa.table(
        {"line": np.arange(1, len(rates) + 1), "rate_msgs_per_s": np.asarray(rates, float), **columns}
    )


def state(rates, requested=None, printed=None, **columns):
    return steady_state(samples(rates, **columns), requested, printed)


def noisy(count=60, level=1000.0, seed=1):
    return np.random.default_rng(seed).normal(level, 10, count)


def test_warm_up_and_ramp_down_are_left_out():
    rates = np.concatenate([[10, 300, 700], noisy(), [400, 20]])
    found = state(rates)
    assert (found["steady_first_line"], found["steady_last_line"]) == (4, 63)
    assert found["rate_msgs_per_s"] == pytest.approx(noisy().mean(), rel=1e-12)
    assert (found["verdict"], found["samples"], found["steady_samples"]) == ("stable", 65, 60)


def test_a_single_interval_that_crosses_the_level_on_its_way_up_is_no_start():
    rates = np.concatenate([[100, 1000, 300, 500], np.full(30, 1000.0)])
    assert state(rates)["steady_first_line"] == 5


def test_intervals_without_all_threads_are_not_looked_at():
    threads = np.array([2, 5, *[10] * 30, 4])
    found = state([1000, 1000, *[1000] * 30, 1000], threads=threads)
    assert (found["steady_first_line"], found["steady_last_line"]) == (3, 32)


def test_a_run_without_variation_keeps_what_is_within_five_percent():
    assert state([500, 960, *[1000] * 20])["steady_first_line"] == 2


@pytest.mark.parametrize(
    ("rates", "requested", "verdict"),
    [
        (noisy(), None, "stable"),
        (noisy(), 1002, "stable"),
        (noisy(), 1030, "short_of_request"),
        (noisy(), 1200, "short_of_request"),
        (np.linspace(800, 1200, 60), None, "drifting"),
        (np.tile([400, 1600], 30), None, "varying"),
        ([1000.0] * 3, None, "too_short"),
        ([500.0] * 25 + [1000.0] * 26 + [500.0] * 49, None, "too_short"),
        ([0.0] * 20, None, "idle"),
        ([], None, "too_short"),
    ],
)
def test_a_run_is_judged(rates, requested, verdict):
    assert state(rates, requested)["verdict"] == verdict


def test_how_much_of_the_requested_rate_was_reached_is_told():
    assert state([900.0] * 20, 1000)["achieved_share"] == pytest.approx(0.9)


def test_a_clock_that_goes_back_is_counted_and_told():
    at = np.concatenate([np.arange(1, 31), np.arange(20, 50)]).astype(float)
    found = state(noisy(), at_s=at)
    assert (found["clock_steps_back"], found["verdict"]) == (1, "clock_went_back")


def test_intervals_count_by_their_length():
    found = state([1000.0, 1040.0] * 10, interval_s=np.tile([3.0, 1.0], 10))
    assert found["rate_msgs_per_s"] == pytest.approx(1010.0)


def test_latencies_are_weighted_by_messages_and_extremes_stay():
    rates = np.tile([1000.0, 1040.0], 10)
    found = state(rates, latency_p99_ms=np.tile([2.0, 4.0], 10), latency_min_ms=np.arange(1.0, 21),
                  latency_max_ms=np.arange(1.0, 21))  # fmt: skip
    assert found["latency_p99_ms"] == pytest.approx((1000 * 2 + 1040 * 4) / 2040)
    assert (found["latency_min_ms"], found["latency_max_ms"]) == (1.0, 20.0)


def test_an_interval_whose_messages_are_not_rate_times_time_is_counted():
    messages = np.full(20, 2000.0)
    messages[3] = 5000
    found = state([1000.0] * 20, messages=messages, interval_s=np.full(20, 2.0))
    assert found["messages_off"] == 1


def test_percentiles_are_those_of_the_intervals():
    rates = noisy(200)
    found = state(rates)
    inside = rates[found["steady_first_line"] - 1 : found["steady_last_line"]]
    for name, share in (("p5", 5), ("p50", 50), ("p95", 95)):
        assert found[f"rate_{name}_msgs_per_s"] == pytest.approx(np.percentile(inside, share), rel=1e-12)


def test_the_same_figures_have_the_same_digest_wherever_they_stand():
    one, other = samples(noisy()), samples(noisy())
    moved = other.set_column(0, "line", pa.array(np.arange(101, 161)))
    digests = [steady_state(table, None, None)["samples_digest"] for table in (one, moved)]
    assert digests[0] == digests[1]
    assert state(noisy(seed=2))["samples_digest"] != digests[0]


def test_a_missing_figure_is_no_rate():
    table = samples([1000.0] * 20)
    gaps = table.set_column(1, "rate_msgs_per_s", pa.array([None, *[1000.0] * 19]))
    assert steady_state(gaps, None, None)["steady_first_line"] == 2


@given(st.lists(st.floats(0, 1e9), max_size=40), st.floats(0.1, 1e6) | st.none())
def test_any_run_gets_a_verdict(rates, requested):
    found = state(rates, requested)
    assert found["steady_samples"] <= found["samples"] == len(rates)
    if found["steady_samples"]:
        assert min(rates) <= found["rate_msgs_per_s"] * (1 + 1e-9)
        assert found["rate_msgs_per_s"] <= max(rates) * (1 + 1e-9)
