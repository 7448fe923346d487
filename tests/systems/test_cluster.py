"""The hub of a large cluster: what it does all day, and whether it survives its network coming back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.calibration.fitting import Fit
from twin.core.configuration import Configuration
from twin.queueing.network import Array
from twin.systems.cluster import SYSTEM, restart_time
from twin.systems.model import Batch, Demands, System

PLATFORM = {
    "os": "windows", "machine": "Netfinity 8500R", "cpus": 4, "mhz": 700, "memory_mb": 8192, "disks": 3,
    "log_disk": "scsi", "disk_layout": "dedicated", "network_mbps": 1000,
}  # fmt: skip
WORKLOAD = {
    "product": "WebSphere MQ", "version": "5.3 CSD03", "family": "cluster", "message_bytes": 4096,
    "persistent": True, "retry_interval_s": 60, "heartbeat_s": 60, "offered_rate_msgs_per_s": 100,
}  # fmt: skip
PLAIN = {"trusted": False, "start_method": "amqmdain", "tuned": False, "suppressed_messages": 8}
TRUSTED = PLAIN | {"trusted": True}
TUNED = {"trusted": True, "start_method": "strmqm", "tuned": True, "suppressed_messages": 11}

Ask = Callable[..., dict[str, float]]


def configured(**values: Any) -> Configuration:
    told = PLATFORM | WORKLOAD | TUNED | {"channel_pairs": 2000} | values
    return Configuration.from_flat({name: value for name, value in told.items() if value is not None})


def answers(demands: Demands, configurations: list[Configuration]) -> dict[str, Array]:
    return dict(SYSTEM.evaluate(Batch(configurations), demands).metrics)


@pytest.fixture(scope="module")
def demands(fitted: Callable[[System], Fit]) -> Demands:
    return fitted(SYSTEM).demands


@pytest.fixture(scope="module")
def ask(demands: Demands) -> Ask:
    def asked(**values: Any) -> dict[str, float]:
        return {name: float(value[0]) for name, value in answers(demands, [configured(**values)]).items()}

    return asked


TABLE = [(1000, PLAIN, 22, 141, 149), (2000, TRUSTED, 37, 174, 218), (3000, TUNED, None, 514, 529)]


@pytest.mark.parametrize(("pairs", "setup", "busy", "channels", "messages"), TABLE)
def test_measured_recoveries_come_out_within_a_quarter(
    ask: Ask, pairs: int, setup: dict[str, Any], busy: float | None, channels: float, messages: float
) -> None:
    said = ask(channel_pairs=pairs, **setup)
    assert said["recovered"] == 1
    assert said["failure_files_seen"] == 0
    assert said["channel_recovery_s"] == pytest.approx(channels, rel=0.25)
    assert said["throughput_recovery_s"] == pytest.approx(messages, rel=0.25)
    assert said["throughput_msgs_per_s"] == pytest.approx(98, rel=0.03)
    assert busy is None or said["cpu_busy_pct"] == pytest.approx(busy, abs=6)


def test_recoveries_keep_the_order_of_the_table(ask: Ask) -> None:
    times = [ask(channel_pairs=pairs, **setup)["channel_recovery_s"] for pairs, setup, *_ in TABLE]
    assert times == sorted(times)


def test_processor_use_keeps_the_order_of_the_report(ask: Ask) -> None:
    told = [
        (1000, PLAIN, 100),
        (2000, TRUSTED, 100),
        (2000, PLAIN, 100),
        (4000, TUNED, 20),
        (4000, TUNED, 100),
    ]
    busy = [
        ask(channel_pairs=pairs, offered_rate_msgs_per_s=rate, **setup)["cpu_busy_pct"]
        for pairs, setup, rate in told
    ]
    assert busy == sorted(busy)


def test_untrusted_channels_run_out_of_desktop_heap_at_2000_pairs(ask: Ask) -> None:
    said = ask(channel_pairs=2000, **PLAIN)
    assert (said["recovered"], said["failure_files_seen"]) == (0, 1)
    assert np.isnan(said["channel_recovery_s"])
    assert said["throughput_msgs_per_s"] == pytest.approx(98, rel=0.03)


@pytest.mark.parametrize("rate", [20, 100])
def test_4000_pairs_never_come_back_for_want_of_processors(ask: Ask, rate: float) -> None:
    said = ask(channel_pairs=4000, offered_rate_msgs_per_s=rate, **TUNED)
    assert (said["recovered"], said["failure_files_seen"]) == (0, 0)
    assert ask(channel_pairs=4000, offered_rate_msgs_per_s=rate, cpus=8, **TUNED)["recovered"] == 1


def test_3000_pairs_need_more_than_trusted_channels(ask: Ask) -> None:
    assert ask(channel_pairs=3000, **TRUSTED)["recovered"] == 0
    assert ask(channel_pairs=3000, **TUNED)["recovered"] == 1


@pytest.mark.parametrize("pairs", [1000, 2000, 3000])
def test_nothing_comes_back_while_every_error_is_logged(ask: Ask, pairs: int) -> None:
    assert ask(channel_pairs=pairs, **(TUNED | {"suppressed_messages": 0}))["recovered"] == 0


def test_three_more_suppressed_messages_do_not_matter(ask: Ask) -> None:
    eight, eleven = (ask(**(TRUSTED | {"suppressed_messages": count})) for count in (8, 11))
    assert eight == pytest.approx(eleven)


def test_restarting_takes_at_least_a_retry_interval(ask: Ask) -> None:
    assert ask(channel_pairs=1)["channel_recovery_s"] >= 60


def test_a_shorter_retry_interval_helps_a_small_hub_and_floods_a_large_one(ask: Ask) -> None:
    small, large = {"channel_pairs": 300}, {"channel_pairs": 3000}
    assert (
        ask(retry_interval_s=30, **small)["channel_recovery_s"]
        < ask(retry_interval_s=60, **small)["channel_recovery_s"]
    )
    assert ask(retry_interval_s=30, **large)["recovered"] == 0
    assert ask(retry_interval_s=120, channel_pairs=4000)["recovered"] == 1


def test_messages_follow_within_a_minute_of_their_channels(ask: Ask) -> None:
    said = ask()
    assert 0 < said["throughput_recovery_s"] - said["channel_recovery_s"] < 60


def test_heartbeats_and_messages_take_processors_from_the_recovery(ask: Ask) -> None:
    frequent, rare = ask(heartbeat_s=5), ask(heartbeat_s=300)
    assert frequent["cpu_busy_pct"] > rare["cpu_busy_pct"]
    assert frequent["channel_recovery_s"] > rare["channel_recovery_s"]
    assert (
        ask(offered_rate_msgs_per_s=300)["channel_recovery_s"]
        > ask(offered_rate_msgs_per_s=20)["channel_recovery_s"]
    )


def test_a_checkpoint_forces_every_channels_file_of_persistent_messages(ask: Ask) -> None:
    assert ask(channel_pairs=3000)["checkpoint_s"] == pytest.approx(180, rel=0.25)
    assert ask(channel_pairs=1500)["checkpoint_s"] == pytest.approx(
        ask(channel_pairs=3000)["checkpoint_s"] / 2
    )
    assert np.isnan(ask(persistent=False)["checkpoint_s"])


def test_desktop_heap_limits_windows_alone(ask: Ask) -> None:
    assert ask(channel_pairs=4000, cpus=64, **PLAIN)["failure_files_seen"] == 1
    assert ask(channel_pairs=4000, cpus=64, os="linux", **PLAIN)["failure_files_seen"] == 0


def stormed(channels: float, interval: float, first: float, last: float, failed: float) -> float:
    told = (np.array([value]) for value in (channels, interval, first, last))
    return float(restart_time(*told, failed)[0])


def test_without_waste_the_storm_is_the_work_over_the_rate() -> None:
    """2000 starts at 20 a second, and no upkeep that comes back."""
    assert stormed(2000, 60, 20, 20, 0) == pytest.approx(100)


def test_what_one_interval_can_start_takes_one_interval() -> None:
    assert stormed(500, 60, 20, 20, 0.3) == pytest.approx(60)


def test_the_flood_lasts_as_long_as_stepping_through_it() -> None:
    channels, interval, first, last, failed = 6000.0, 60.0, 40.0, 22.0, 0.3
    waiting, passed, step = channels, 0.0, 0.001
    while waiting / interval > (possible := last + (first - last) * waiting / channels):
        waiting -= step * (possible - failed * waiting / interval) / (1 - failed)
        passed += step
    assert stormed(channels, interval, first, last, failed) == pytest.approx(passed + interval, rel=1e-3)


def test_failing_starts_that_need_everything_leave_nothing() -> None:
    """6000 channels try 100 times a second: at 0.3 of an effort each, their failing takes 30 starts."""
    assert np.isfinite(stormed(6000, 60, 31, 20, 0.3))
    assert np.isnan(stormed(6000, 60, 29, 20, 0.3))
    assert np.isnan(stormed(6000, 60, 99, 20, 1.2))


setups = st.fixed_dictionaries({
    "channel_pairs": st.integers(1, 20_000),
    "trusted": st.booleans(),
    "tuned": st.booleans(),
    "start_method": st.sampled_from(["amqmdain", "strmqm"]),
    "suppressed_messages": st.integers(0, 20),
    "retry_interval_s": st.floats(1, 1200),
    "heartbeat_s": st.floats(1, 600),
    "message_bytes": st.sampled_from([0, 1024, 4096, 2**20]),
    "persistent": st.booleans(),
    "cpus": st.integers(1, 64),
    "offered_rate_msgs_per_s": st.one_of(st.none(), st.floats(0.1, 5000)),
})  # fmt: skip


def longer(less: float, more: float) -> bool:
    """Or as long; a recovery that never comes is the longest."""
    less, more = (np.inf if np.isnan(value) else value for value in (less, more))
    return bool(more >= less * (1 - 1e-9))


@settings(max_examples=40, deadline=None)
@given(setup=setups, more=st.integers(1, 3000))
def test_more_pairs_are_never_faster(demands: Demands, setup: dict[str, Any], more: int) -> None:
    larger = setup | {"channel_pairs": setup["channel_pairs"] + more}
    said = answers(demands, [configured(**setup), configured(**larger)])
    assert longer(*said["channel_recovery_s"])
    assert longer(*said["throughput_recovery_s"])
    assert longer(*said["checkpoint_s"])
    assert longer(*1 / said["throughput_msgs_per_s"])
    assert longer(*said["failure_files_seen"])


@settings(max_examples=40, deadline=None)
@given(setup=setups, more=st.integers(1, 64))
def test_more_processors_never_hurt(demands: Demands, setup: dict[str, Any], more: int) -> None:
    faster = setup | {"cpus": setup["cpus"] + more}
    said = answers(demands, [configured(**faster), configured(**setup)])
    assert longer(*said["channel_recovery_s"])
    assert longer(*1 / said["throughput_msgs_per_s"])


@settings(max_examples=40, deadline=None)
@given(setup=setups, size=st.integers(1, 2**20))
def test_larger_messages_are_never_faster(demands: Demands, setup: dict[str, Any], size: int) -> None:
    larger = setup | {"message_bytes": setup["message_bytes"] + size}
    said = answers(demands, [configured(**setup), configured(**larger)])
    assert longer(*1 / said["throughput_msgs_per_s"])
    # one that cannot sustain the offered rate runs at its own pace, and nobody waits to be let in
    own_pace = answers(demands, [configured(**larger | {"offered_rate_msgs_per_s": None})])
    sustained = own_pace["throughput_msgs_per_s"][0] > (setup["offered_rate_msgs_per_s"] or 0.0)
    assert longer(*said["response_ms"]) or not sustained


@pytest.mark.parametrize(
    "advice", [{"trusted": True}, {"tuned": True}, {"start_method": "strmqm"}, {"suppressed_messages": 20}]
)
@settings(max_examples=20, deadline=None)
@given(setup=setups)
def test_what_the_report_recommends_never_hurts(
    demands: Demands, advice: dict[str, Any], setup: dict[str, Any]
) -> None:
    said = answers(demands, [configured(**setup | advice), configured(**setup)])
    assert longer(*said["channel_recovery_s"])
    assert longer(*said["cpu_busy_pct"])


@pytest.mark.parametrize("pairs", [1, 1_000_000])
@pytest.mark.parametrize("size", [0, 2**30])
@pytest.mark.parametrize("cpus", [1, 1024])
@pytest.mark.parametrize("rate", [None, 1e-3, 1e6])
def test_extremes_are_answered(ask: Ask, pairs: int, size: int, cpus: int, rate: float | None) -> None:
    said = ask(channel_pairs=pairs, message_bytes=size, cpus=cpus, offered_rate_msgs_per_s=rate)
    times = {"channel_recovery_s", "throughput_recovery_s"}
    assert all(np.isfinite(value) for name, value in said.items() if name not in times)
    assert said["throughput_msgs_per_s"] > 0
    assert 0 <= said["cpu_busy_pct"] <= 100 + 1e-9
    assert all(np.isfinite(said[name]) == (said["recovered"] == 1) for name in times)
