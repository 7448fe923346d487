"""Producers, queues and consumers; and products and machines that differ: bounds, and what the rows tell of
each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.encoding import features_of
from twin.app.describing import flat_example
from twin.calibration.calibration import calibration_of
from twin.calibration.fitting import fit
from twin.calibration.observations import Observation, Observations
from twin.calibration.predictor import AnalyticPredictor
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.prediction import Excuse, Prediction
from twin.systems.messaging import SYSTEM
from twin.systems.model import Batch, Demands, Evaluation

PRIORS = {one.name: one.prior for one in SYSTEM.parameters}
FAMILIES = ("request_reply", "point_to_point")


def asked(family: str = "point_to_point", **changes: object) -> Configuration:
    return Configuration.from_flat(flat_example(family) | changes)


def evaluated(*configurations: Configuration, demands: Demands | None = None) -> Evaluation:
    return SYSTEM.evaluate(Batch(configurations), demands or SYSTEM.at_priors())


def rates(*configurations: Configuration, demands: Demands | None = None) -> list[float]:
    return evaluated(*configurations, demands=demands).metrics["throughput_msgs_per_s"].tolist()


def test_a_producer_with_a_window_of_one_waits_for_its_own_put_alone() -> None:
    alone = {"window": 1, "persistent": True, "message_bytes": 0, "log_disk": "cached", "cpus": 2}
    steps = (
        PRIORS["operation_cpu"] * PRIORS["persistent_cpu"]
        + PRIORS["forces"] * PRIORS["force_ms[cached]"]
        + PRIORS["delay"]
    )
    with_consumer, without = rates(asked(**alone), asked(consumers=0, **alone))
    assert with_consumer == pytest.approx(1000 / steps)
    assert without == pytest.approx(with_consumer)


def test_a_round_trip_is_as_much_work_as_two_deliveries() -> None:
    same = {"message_bytes": 4096, "persistent": True}
    questions = asked(window=1, **same), asked("request_reply", **same)
    delivery, round_trip = evaluated(*questions).metrics["cpu_ms_per_msg"]
    assert round_trip == pytest.approx(2 * delivery)


def test_puts_and_gets_share_the_processors() -> None:
    """Of a cheap queue: without the other half either goes twice as fast."""
    demands = Demands(PRIORS | {"lock": 1e-6, "reading": 1e-9})
    many = {"persistent": False, "cpus": 4, "message_bytes": 0, "window": None, "prefetch": None}
    both, puts, gets = rates(
        asked(**many), asked(consumers=0, **many), asked(producers=0, **many), demands=demands
    )
    assert both == pytest.approx(4000 / (2 * PRIORS["operation_cpu"]), rel=0.02)
    assert puts == gets == pytest.approx(2 * both, rel=0.02)
    busy = evaluated(asked(**many), demands=demands).metrics["cpu_busy_pct"]
    assert busy[0] == pytest.approx(100, abs=2)


def test_the_scarcer_of_window_and_prefetch_decides() -> None:
    few, other, many = rates(
        asked(producers=3, window=2), asked(consumers=3, prefetch=2, producers=50), asked(producers=50)
    )
    assert few == pytest.approx(other)
    assert many > 2 * few


def test_who_never_waits_is_as_fast_as_the_ceilings_allow() -> None:
    """Within the 2% that a finite number of messages leaves."""
    endless = {"window": None, "prefetch": None, "cpus": 8}
    found = evaluated(*(asked(persistent=persistent, **endless) for persistent in (False, True)))
    assert found.metrics["throughput_msgs_per_s"] == pytest.approx(
        found.metrics["capacity_msgs_per_s"], rel=0.02
    )


def test_a_commit_of_many_messages_is_forced_once() -> None:
    """Between messages of one window, whose commits are forced one after the other."""
    one, ten = rates(*(asked(window=1, persistent=True, messages_per_commit=each) for each in (1, 10)))
    force = PRIORS["forces"] * PRIORS["force_ms[solid_state]"]
    # and so is what a commit costs the processors
    share = PRIORS["committing"] / (1 + PRIORS["committing"])
    commit = PRIORS["operation_cpu"] * PRIORS["persistent_cpu"] * share
    # but for the messages that are forced for themselves
    forced = 0.9 / (1 + PRIORS["own_forces"])
    assert 1000 / one - 1000 / ten == pytest.approx(forced * force + 0.9 * commit)


def test_messages_that_travel_together_cost_less_than_single_ones() -> None:
    """Eight programs on one connection, against eight on their own."""
    eight = {"producers": 8, "consumers": 8, "window": 1, "persistent": False}
    apart, shared = evaluated(asked(**eight), asked(connections=1, **eight)).metrics["cpu_ms_per_msg"]
    per_kb = 2 * PRIORS["cpu_per_kb"]
    groups = (8 ** (1 - PRIORS["apart"]), 8)
    costs = [1 + PRIORS["reading"] / group ** PRIORS["travelling"] for group in groups]
    assert (shared - per_kb) / (apart - per_kb) == pytest.approx(costs[1] / costs[0])


def test_consumers_that_hold_back_wait_for_their_own_way() -> None:
    one_by_one = {"window": 100, "persistent": False, "message_bytes": 0}
    slow = Demands(PRIORS | {"fetch": 3.0})
    ahead, single = (asked(prefetch=held, **one_by_one) for held in (200, 1))
    assert rates(ahead, demands=slow) == rates(ahead)
    longer = 1000 / rates(single, demands=slow)[0] - 1000 / rates(single)[0]
    assert longer == pytest.approx(2 * PRIORS["delay"])


def test_a_queue_is_a_ceiling_that_more_queues_lift() -> None:
    much = {"persistent": False, "cpus": 64, "message_bytes": 0, "producers": 10, "consumers": 10}
    found = evaluated(asked(**much), asked(queues=2, **much))
    assert found.solution is not None
    assert found.solution.bottleneck[0] == "queue"
    first, second = found.metrics["throughput_msgs_per_s"]
    assert first == pytest.approx(1000 / (2 * PRIORS["lock"]))
    assert second > 1.5 * first


def test_gets_write_no_message_to_the_log() -> None:
    large = {"persistent": True, "message_bytes": 2**20, "cpus": 64}
    gets, puts = evaluated(asked(producers=0, **large), asked(consumers=0, **large)).metrics[
        "capacity_msgs_per_s"
    ]
    assert puts == pytest.approx(1000 / (1024 * PRIORS["log_per_kb"]))
    assert gets > puts


def test_nobody_who_sends_and_nobody_who_receives_is_refused() -> None:
    (answer,) = AnalyticPredictor({}).predict([asked(producers=0, consumers=0)])
    assert isinstance(answer, Excuse)
    assert answer.excuse.startswith("producers:")


@settings(deadline=None)
@given(
    family=st.sampled_from(FAMILIES),
    column=st.sampled_from(["message_bytes", "cpus"]),
    steps=st.lists(st.integers(1, 1024), min_size=2, max_size=4),
    persistent=st.booleans(),
    network=st.sampled_from([None, 100.0, 10_000.0]),
    one=st.integers(0, 5),
    other=st.integers(0, 200),
    window=st.sampled_from([None, 1, 30]),
    per_commit=st.integers(1, 50),
)
def test_more_bytes_never_help_and_more_processors_never_harm(
    family, column, steps, persistent, network, one, other, window, per_commit
) -> None:
    setup: dict[str, object] = {"persistent": persistent, "network_mbps": network}
    if family == "request_reply":
        setup |= {"clients": other + 1}
    else:
        setup |= {"producers": one, "consumers": other + (one == 0), "window": window, "prefetch": window}
        setup |= {"messages_per_commit": per_commit}
    unit = 1 if column == "cpus" else 1024
    found = np.array(rates(*(asked(family, **setup, **{column: unit * step}) for step in sorted(steps))))
    rising = np.diff(found) / found[:-1]
    assert (rising >= -1e-9).all() if column == "cpus" else (rising <= 1e-9).all()


@pytest.mark.parametrize(
    ("setup", "population"),
    [
        ({"producers": 3, "window": 20}, 60),
        ({"producers": 3, "window": 20, "consumers": 2, "prefetch": 5}, 10),
        ({"producers": 0, "consumers": 4, "prefetch": 8}, 32),
        ({"producers": 3, "window": None, "prefetch": None}, 300),
    ],
)
def test_the_features_count_the_messages_under_way(setup: dict[str, object], population: int) -> None:
    features = features_of(Columns.of([asked(**setup), asked("request_reply", clients=24)]))
    assert features["population"].tolist() == [population, 24]
    assert features["deliveries"].tolist() == [1, 1]


def measured(product: str, machine: str, faster: float, mhz: float | None = 3000) -> list[Observation]:
    """What the priors say, `faster` times over, at eight numbers of clients."""
    found = []
    for clients in (1, 2, 4, 8, 16, 32, 64, 128):
        one = asked(
            "request_reply", product=product, machine=machine, mhz=mhz, clients=clients, persistent=False
        )
        name = f"{product}/{machine}/{clients}"
        (rate,) = rates(one)
        found.append(Observation(name, "own", one, "throughput_msgs_per_s", rate * faster, machine))
    return found


def answers(rows: list[Observation], *configurations: Configuration) -> list[Prediction | Excuse]:
    calibration = calibration_of(fit(Observations.of(SYSTEM, rows)))
    return AnalyticPredictor({SYSTEM.name: calibration}).predict(configurations)


def test_rows_of_two_products_tell_each_of_them() -> None:
    rows = measured("slow", "box", 0.5) + measured("quick", "box", 2.0)
    said = answers(rows, *(row.configuration for row in rows))
    for row, one in zip(rows, said, strict=True):
        assert isinstance(one, Prediction)
        assert one.value == pytest.approx(row.value, rel=0.1)


def test_a_product_without_rows_is_like_the_others_with_more_doubt() -> None:
    rows = measured("slow", "box", 0.5) + measured("quick", "box", 2.0)
    known, new = answers(
        rows,
        rows[3].configuration,
        asked("request_reply", product="new", machine="box", persistent=False, clients=8),
    )
    assert isinstance(known, Prediction)
    assert isinstance(new, Prediction)
    assert rows[3].value < new.value < rows[11].value
    assert np.log(new.hi90 / new.lo90) > 3 * np.log(known.hi90 / known.lo90)
    assert known.domain_reason is None
    assert "product = new" in str(new.domain_reason)


def test_a_machine_without_rating_answers_from_its_own_rows() -> None:
    rows = measured("one", "rated", 1.0) + measured("one", "unrated", 3.0, mhz=None)
    own, elsewhere = answers(
        rows, rows[10].configuration, asked("request_reply", product="one", machine="other", mhz=None)
    )
    assert isinstance(own, Prediction)
    assert own.value == pytest.approx(rows[10].value, rel=0.1)
    assert isinstance(elsewhere, Excuse)
    assert "no rating in common" in elsewhere.excuse


def test_what_an_effect_multiplies_is_what_it_says() -> None:
    """A factor common to all labels, taken from the demands instead, changes nothing."""
    configurations = [
        asked(family, product=product, machine=machine, persistent=persistent, message_bytes=size)
        for family in FAMILIES
        for product in ("a", "b")
        for machine in ("x", "y")
        for persistent in (False, True)
        for size in (100, 100_000)
    ]
    system = SYSTEM.seen_in(Columns.of(configurations))
    values = {one.name: one.prior for one in system.parameters}
    before = rates(*configurations, demands=Demands(values))
    for effect in SYSTEM.effects:
        shifted = {
            name: value * 1.5 if name.startswith(f"{effect.name}[")
            else value / 1.5 if name.partition("[")[0] in effect.of
            else value
            for name, value in values.items()
        }  # fmt: skip
        assert rates(*configurations, demands=Demands(shifted)) == pytest.approx(before, rel=1e-9)
