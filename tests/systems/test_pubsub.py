"""Publish and subscribe: what the report says in words must come out of the physics."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from twin.calibration.fitting import Fit
from twin.calibration.scores import family_scores
from twin.core.configuration import Configuration
from twin.core.workloads.pubsub import BankScenario, FanOut, Loopback
from twin.systems.model import Batch, Demands, Evaluation, System
from twin.systems.pubsub import SYSTEM

FAN_OUT: dict[str, Any] = FanOut.example | {
    "family": "fan_out", "broker": "genuine", "subscribers": 16, "message_bytes": 100,
    "persistent": False, "syncpoint_if_persistent": True,
}  # fmt: skip
LOOPBACK: dict[str, Any] = Loopback.example | {
    "family": "loopback", "path": "genuine", "batch_size": 5, "message_bytes": 100,
    "persistent": False, "syncpoint_if_persistent": True,
}  # fmt: skip
BANK: dict[str, Any] = BankScenario.example | {"family": "bank", "message_bytes": 10_000}
FAMILIES = {"fan_out": FAN_OUT, "loopback": LOOPBACK, "bank": BANK}

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def calibrated(fitted: Callable[[System], Fit]) -> Fit:
    return fitted(SYSTEM)


@pytest.fixture(scope="module")
def evaluate(calibrated: Fit) -> Callable[..., Evaluation]:
    """Of one experiment with some columns varied: `evaluate(FAN_OUT, subscribers=[1, 2])`."""

    def evaluation(base: dict[str, Any], **varied: list[Any]) -> Evaluation:
        rows = [dict(zip(varied, values, strict=True)) for values in zip(*varied.values(), strict=True)]
        return SYSTEM.evaluate(
            Batch([Configuration.from_flat(base | row) for row in rows or [{}]]), calibrated.demands
        )

    return evaluation


@pytest.fixture(scope="module")
def elapsed(evaluate: Ask) -> Ask:
    return lambda base, **varied: evaluate(base, **varied).metrics["elapsed_ms"]


def test_fit_is_near_the_noise_with_few_parameters(calibrated: Fit) -> None:
    scores = {(one.family, one.metric): one for one in family_scores(calibrated)}
    assert scores["fan_out", "elapsed_ms"].mape < 3.0
    assert scores["loopback", "elapsed_ms"].mape < 3.0
    assert scores["bank", "throughput_msgs_per_s"].mape < 4.0
    for score in scores.values():
        if score.n >= 6:
            assert score.effective_parameters <= score.n / 2


def test_doubtful_figures_stay_outliers(calibrated: Fit) -> None:
    doubted = [
        abs(residual)
        for row, residual in zip(calibrated.observations.rows, calibrated.residuals, strict=True)
        if row.figure_id.startswith("mqseries-pubsub-aix:195:")
    ]
    assert max(doubted) > 0.15


def test_priors_alone_give_numbers() -> None:
    prior = Demands({one.name: one.prior for one in SYSTEM.parameters})
    for base in FAMILIES.values():
        metrics = SYSTEM.evaluate(Batch([Configuration.from_flat(base)]), prior).metrics
        assert metrics["elapsed_ms"][0] > 0


def test_idle_subscribers_cost_nothing(elapsed: Ask) -> None:
    times = elapsed(FAN_OUT, idle_subscribers=[0, 10, 10_000], idle_topics=["none", "single", "multiple"])
    assert times == pytest.approx(times[0])


def test_shared_queue_is_proportional_to_subscribers(elapsed: Ask) -> None:
    few, some, many = elapsed(FAN_OUT | {"publications": 15}, subscribers=[100, 200, 300])
    assert many - some == pytest.approx(some - few, rel=0.02)


def test_own_queues_hurt_beyond_the_open_cache(elapsed: Ask) -> None:
    counts = [60, 100, 200, 240]
    own, shared = (
        elapsed(FAN_OUT | {"publications": 15, "subscriber_queues": kind}, subscribers=counts)
        for kind in ("own", "shared")
    )
    excess = (own - shared) / shared
    assert (excess > 0).all()
    assert (excess[:2] < 0.5).all()
    assert (excess[2:] > 1.5).all()


def test_one_subscriber_does_not_care_whose_queue_it_is(elapsed: Ask) -> None:
    own, shared = elapsed(
        FAN_OUT | {"publications": 15, "subscribers": 1}, subscriber_queues=["own", "shared"]
    )
    assert own == pytest.approx(shared, rel=0.01)


def test_syncpoint_option_improves_and_the_log_hurts(elapsed: Ask) -> None:
    modes = {"persistent": [False, False, True], "syncpoint_if_persistent": [True, False, False]}
    for base in (FAN_OUT, LOOPBACK):
        outside, inside, persistent = elapsed(base, **modes)
        assert outside < inside < persistent / 2


def test_syncpoint_option_does_not_matter_to_persistent_messages(elapsed: Ask) -> None:
    with_option, without = elapsed(FAN_OUT | {"persistent": True}, syncpoint_if_persistent=[True, False])
    assert with_option == without


def test_overhead_of_the_broker_is_small_for_persistent_messages(elapsed: Ask) -> None:
    genuine, simulated = elapsed(
        FAN_OUT | {"persistent": True, "syncpoint_if_persistent": False}, broker=["genuine", "simulated"]
    )
    assert simulated < genuine < 1.02 * simulated


@pytest.mark.parametrize("path", ["genuine", "simulated", "channel"])
@pytest.mark.parametrize("persistent", [True, False])
def test_batches_beyond_five_save_little(elapsed: Ask, path: str, persistent: bool) -> None:
    base = LOOPBACK | {"path": path, "persistent": persistent}
    alone, five, thirty = elapsed(base, batch_size=[1, 5, 30])
    assert alone > five > thirty
    assert alone - five > five - thirty


def test_bank_reaches_twice_its_need_and_the_disk_is_busy(evaluate: Ask) -> None:
    evaluation = evaluate(BANK)
    assert evaluation.metrics["throughput_msgs_per_s"][0] == pytest.approx(20, rel=0.1)
    assert evaluation.metrics["disk_busy_pct"][0] == pytest.approx(80, abs=10)


@pytest.mark.parametrize("base", [FAN_OUT, LOOPBACK])
def test_disk_use_was_told_for_the_bank_alone(evaluate: Ask, base: dict[str, Any]) -> None:
    assert np.isnan(evaluate(base).metrics["disk_busy_pct"]).all()


@pytest.mark.parametrize("base", FAMILIES.values(), ids=FAMILIES)
def test_a_message_in_flight_is_the_rate(evaluate: Ask, base: dict[str, Any]) -> None:
    metrics = evaluate(base).metrics
    assert metrics["throughput_msgs_per_s"] == pytest.approx(1000 / metrics["elapsed_ms"])


MODES = [
    {"persistent": True, "syncpoint_if_persistent": False},
    {"persistent": False, "syncpoint_if_persistent": False},
    {"persistent": False, "syncpoint_if_persistent": True},
]


@pytest.mark.parametrize("mode", MODES, ids=["persistent", "syncpoint", "outside"])
@pytest.mark.parametrize("base", [FAN_OUT, LOOPBACK], ids=["fan_out", "loopback"])
def test_larger_messages_take_longer(elapsed: Ask, base: dict[str, Any], mode: dict[str, bool]) -> None:
    times = elapsed(base | mode, message_bytes=[0, 10, 100, 1000, 5000, 10_000, 100_000, 2**30])
    assert np.isfinite(times).all()
    assert (np.diff(times) > 0).all()


@pytest.mark.parametrize("mode", MODES, ids=["persistent", "syncpoint", "outside"])
@pytest.mark.parametrize("queues", ["own", "shared"])
def test_more_subscribers_take_longer(elapsed: Ask, mode: dict[str, bool], queues: str) -> None:
    counts = [1, 2, 64, 120, 128, 140, 160, 300, 10_000, 1_000_000]
    for publications in (1, 15):
        base = FAN_OUT | mode | {"subscriber_queues": queues, "publications": publications}
        times = elapsed(base, subscribers=counts)
        assert np.isfinite(times).all()
        assert (np.diff(times) > 0).all()


def test_bank_slows_with_size_and_subscribers(evaluate: Ask) -> None:
    by_size = evaluate(BANK, message_bytes=[0, 10, 1000, 10_000, 2**30]).metrics["throughput_msgs_per_s"]
    by_subscribers = evaluate(BANK, subscribers=[1, 3, 10, 1_000_000]).metrics["throughput_msgs_per_s"]
    assert (np.diff(by_size) < 0).all()
    assert (np.diff(by_subscribers) < 0).all()


@pytest.mark.parametrize("base", FAMILIES.values(), ids=FAMILIES)
def test_processors_never_hurt(elapsed: Ask, base: dict[str, Any]) -> None:
    times = elapsed(base, cpus=[1, 8, 1024])
    assert (np.diff(times) <= 0).all()


@pytest.mark.parametrize("base", FAMILIES.values(), ids=FAMILIES)
def test_a_faster_log_disk_helps_persistent_messages(elapsed: Ask, base: dict[str, Any]) -> None:
    plain, cached, unknown = elapsed(base | {"persistent": True}, log_disk=["ssa", "cached", None])
    assert cached < plain
    assert unknown == plain


@pytest.mark.parametrize(
    ("base", "varied", "field"),
    [
        (FAN_OUT, {"subscriber_queues": "own", "persistent": True}, "subscriber_queues"),
        (BANK, {"persistent": False}, "persistent"),
    ],
)
def test_what_was_never_measured_is_excused(base: dict[str, Any], varied: dict[str, Any], field: str) -> None:
    assert SYSTEM.excuse(Configuration.from_flat(base)) is None
    excuse = SYSTEM.excuse(Configuration.from_flat(base | varied))
    assert excuse is not None
    assert excuse.startswith(field)


def test_regimes_name_the_experiment() -> None:
    assert SYSTEM.regime is not None
    asked = [
        FAN_OUT,
        FAN_OUT | {"subscriber_queues": "own"},
        FAN_OUT | {"idle_subscribers": 10, "idle_topics": "single"},
        LOOPBACK,
        BANK,
    ]
    assert [SYSTEM.regime(Configuration.from_flat(one)) for one in asked] == [
        "fan-out, shared queue", "fan-out, own queues", "idle subscribers", "loop-back genuine", "bank",
    ]  # fmt: skip
