"""The recovery storm of a cluster's channels, against what the report measured and advises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from twin.core.configuration import Configuration
from twin.queueing.network import BadNetwork
from twin.simulation.storm import Recovery, Storm, recover
from twin.systems.cluster import SYSTEM, storm_of
from twin.systems.model import Batch

SEEDS = range(1, 6)
BASE = {
    "os": "windows", "machine": "Netfinity 8500R", "cpus": 4, "mhz": 700, "memory_mb": 8192, "disks": 3,
    "log_disk": "scsi", "disk_layout": "dedicated", "network_mbps": 1000, "product": "WebSphere MQ",
    "version": "5.3 CSD03", "family": "cluster", "message_bytes": 4096, "persistent": True,
    "retry_interval_s": 60, "heartbeat_s": 60, "offered_rate_msgs_per_s": 100,
}  # fmt: skip
PLAIN = {"trusted": False, "start_method": "amqmdain", "tuned": False, "suppressed_messages": 8}
TRUSTED = PLAIN | {"trusted": True}
TUNED = {"trusted": True, "start_method": "strmqm", "tuned": True, "suppressed_messages": 11}

Storms = Callable[..., Storm]


@pytest.fixture(scope="module")
def storm(fitted) -> Storms:
    demands = fitted(SYSTEM).demands

    def of(second_hub: bool = False, **values: Any) -> Storm:
        batch = Batch([Configuration.from_flat(BASE | values)])
        return storm_of(batch, demands, second_hub=second_hub)

    return of


def recoveries(storm: Storm) -> list[Recovery]:
    return [recover(storm, seed) for seed in SEEDS]


def mean_time(storm: Storm) -> float:
    """Until all channels run; endless where they never do."""
    times = [one.channel_recovery for one in recoveries(storm)]
    return float(np.mean([np.inf if time is None else time for time in times]))


@pytest.mark.parametrize(
    ("pairs", "setup", "channels_s", "throughput_s"),
    [(1000, PLAIN, 141, 149), (2000, TRUSTED, 174, 218), (3000, TUNED, 514, 529)],
)
def test_measured_recoveries_come_out_within_a_quarter(storm, pairs, setup, channels_s, throughput_s):
    found = recoveries(storm(channel_pairs=pairs, **setup))
    assert np.mean([one.channel_recovery for one in found]) == pytest.approx(channels_s, rel=0.25)
    assert np.mean([one.throughput_recovery for one in found]) == pytest.approx(throughput_s, rel=0.25)
    for one in found:
        assert not one.heap_ran_out
        assert one.before == pytest.approx(98, rel=0.02)
        # after a minute and a second, line 312
        assert one.dropped == pytest.approx(61, rel=0.03)


def test_2000_untrusted_pairs_run_out_of_desktop_heap(storm):
    for one in recoveries(storm(channel_pairs=2000, **PLAIN)):
        assert one.channel_recovery is None
        assert one.throughput_recovery is None
        assert one.heap_ran_out


@pytest.mark.parametrize("rate", [20, 100])
def test_4000_pairs_never_come_back_for_want_of_processors(storm, rate):
    for one in recoveries(storm(channel_pairs=4000, offered_rate_msgs_per_s=rate, **TUNED)):
        assert one.channel_recovery is None
        assert not one.heap_ran_out
        # all of it is spent on starts that come to nothing
        assert one.busy[-60:].mean() > 3.9
    assert np.isfinite(mean_time(storm(channel_pairs=4000, cpus=8, **TUNED)))


@pytest.mark.parametrize("pairs", [1000, 2000, 3000])
def test_without_suppression_nothing_comes_back(storm, pairs):
    """The first advice: the others do not help while every error is written to the log."""
    assert mean_time(storm(channel_pairs=pairs, **TUNED | {"suppressed_messages": 0})) == np.inf


def test_advice_works_in_the_order_of_the_report(storm):
    """Suppression is enough for 1000 pairs, trusted channels for 2000, all of it for 3000."""
    assert np.isfinite(mean_time(storm(channel_pairs=1000, **PLAIN)))
    assert mean_time(storm(channel_pairs=2000, **PLAIN)) == np.inf
    assert np.isfinite(mean_time(storm(channel_pairs=2000, **TRUSTED)))
    assert mean_time(storm(channel_pairs=3000, **TRUSTED)) == np.inf
    assert np.isfinite(mean_time(storm(channel_pairs=3000, **TUNED)))


def test_trusted_channels_recover_sooner(storm):
    assert mean_time(storm(channel_pairs=1000, **TRUSTED)) < mean_time(storm(channel_pairs=1000, **PLAIN))


@pytest.mark.parametrize("relief", [{"tuned": True}, {"start_method": "strmqm"}])
def test_thread_pooling_and_the_start_method_relieve_the_heap(storm, relief):
    assert (
        storm(channel_pairs=3000, **TRUSTED | relief).room > 6000 > storm(channel_pairs=3000, **TRUSTED).room
    )


def test_a_shorter_retry_interval_is_faster_until_it_floods_the_hub(storm):
    few, many = {"channel_pairs": 500} | TRUSTED, {"channel_pairs": 2000} | TRUSTED
    assert mean_time(storm(retry_interval_s=30, **few)) < mean_time(storm(retry_interval_s=60, **few))
    assert mean_time(storm(retry_interval_s=30, **many)) == np.inf


def test_a_longer_retry_interval_saves_a_hub_that_would_never_recover(storm):
    assert np.isfinite(mean_time(storm(channel_pairs=4000, retry_interval_s=120, **TUNED)))


def test_messages_flow_as_soon_as_channels_start(storm):
    found = recover(storm(channel_pairs=3000, **TUNED))
    early = (found.time > 120) & (found.time < 180)
    assert 0 < found.messages[early].mean() < 0.5 * found.before
    assert found.running[early].mean() < 0.5 * found.running.max()


def test_a_second_hub_hides_the_failure_from_the_branches(storm):
    alone, helped = (recover(storm(channel_pairs=3000, second_hub=help_, **TUNED)) for help_ in (False, True))
    after_the_cut = slice(31, None)
    assert np.convolve(alone.messages[after_the_cut], np.full(10, 0.1), "valid").min() == 0
    lowest = np.convolve(helped.messages[after_the_cut], np.full(10, 0.1), "valid").min()
    assert lowest > 0.9 * helped.before
    assert helped.channel_recovery is not None


def test_a_storm_is_reproducible_by_its_seed(storm):
    one, same, other = (recover(storm(channel_pairs=1000, **PLAIN), seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.running, same.running)
    assert not np.array_equal(one.running[:150], other.running[:150])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"channels": 0}, "channels are 0"),
        ({"channels": 2_000_001}, "channels are 2000001"),
        ({"processors": 0.0}, "processors is 0"),
        ({"retry_interval": np.inf}, "retry_interval is inf"),
        ({"retry_interval": 1e6}, "take longer"),
        ({"retry_interval": 1e-6}, "too many"),
        ({"start_work": -1.0}, "connecting"),
    ],
)
def test_an_impossible_storm_is_refused(storm, change, reason):
    with pytest.raises(BadNetwork, match=reason):
        recover(storm(channel_pairs=10, **PLAIN)._replace(**change))
