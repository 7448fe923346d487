"""Which configurations to measure."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from training.probing import least_sure
from twin.app.describing import flat_example
from twin.calibration.calibration import Calibration, calibration_of
from twin.calibration.fitting import fit
from twin.calibration.observations import Observation, Observations
from twin.calibration.predictor import AnalyticPredictor
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.prediction import THROUGHPUT
from twin.systems.hub import SYSTEM as HUB
from twin.systems.messaging import SYSTEM
from twin.systems.model import Batch, Demands


def asked(**changes: object) -> Configuration:
    return Configuration.from_flat(flat_example("point_to_point") | {"network_mbps": None} | changes)


def grid(*products: str) -> list[Configuration]:
    return [
        asked(
            product=product, persistent=persistent, message_bytes=size, producers=programs,
            consumers=programs, window=window, prefetch=window,
        )
        for product, persistent, size, programs, window in itertools.product(
            products, (False, True), (100, 10_000), (1, 2, 8), (1, 30)
        )
    ]  # fmt: skip


def rates(configurations: list[Configuration], seed: int) -> np.ndarray:
    """Of products and a machine that nobody knows but that could be, by what is believed."""
    chance = np.random.default_rng(seed)
    demands = {
        one.name: one.prior * np.exp(one.spread * chance.standard_normal())
        for one in SYSTEM.seen_in(Columns.of(configurations)).parameters
    }
    return SYSTEM.evaluate(Batch(configurations), Demands(demands)).metrics[THROUGHPUT]


def fitted(configurations: list[Configuration], values: np.ndarray, places: list[int]) -> Calibration:
    rows = [
        Observation(f"{at:03}", "own", configurations[at], THROUGHPUT, float(values[at]), "all")
        for at in places
    ]
    return calibration_of(fit(Observations.of(SYSTEM, rows)))


def error(
    configurations: list[Configuration], values: np.ndarray, truth: np.ndarray, places: list[int]
) -> float:
    """Of the others, learned from these."""
    model = AnalyticPredictor({SYSTEM.name: fitted(configurations, values, places)})
    others = [at for at in range(len(configurations)) if at not in places]
    said = model.foretell(SYSTEM, Columns.of([configurations[at] for at in others]), THROUGHPUT)
    return float(np.nanmean(np.abs(said.value - np.log(truth[others]))))


def test_chosen_points_tell_more_of_the_rest_than_others_do() -> None:
    some = grid("one", "other")
    chosen = least_sure(SYSTEM, None, some, len(some) // 3)
    assert len(set(chosen)) == len(some) // 3
    designed, by_chance = [], []
    for seed in range(4):
        truth = rates(some, seed)
        values = truth * np.exp(0.05 * np.random.default_rng(100 + seed).standard_normal(len(some)))
        designed.append(error(some, values, truth, chosen))
        for draw in range(3):
            drawn = np.random.default_rng([seed, draw]).permutation(len(some))[: len(chosen)].tolist()
            by_chance.append(error(some, values, truth, drawn))
    assert np.mean(designed) < 0.85 * np.mean(by_chance)


def test_every_product_is_looked_at_and_both_modes() -> None:
    some = grid("one", "other")
    first = [some[at].flat() for at in least_sure(SYSTEM, None, some, 6)]
    assert {one["product"] for one in first} == {"one", "other"}
    assert {one["persistent"] for one in first} == {False, True}


def test_the_choice_is_always_the_same_and_goes_on_where_it_stopped() -> None:
    some = grid("one", "other")
    chosen = least_sure(SYSTEM, None, some, 8)
    assert least_sure(SYSTEM, None, some, 8) == chosen
    assert least_sure(SYSTEM, None, some, 4, [some[at] for at in chosen[:4]]) == chosen[4:]


def test_what_is_known_or_not_covered_is_never_chosen() -> None:
    some = [*grid("one"), asked(product="one", producers=0, consumers=0)]
    chosen = least_sure(SYSTEM, None, some, len(some), some[:5])
    assert sorted(chosen) == list(range(5, len(some) - 1))


def test_nothing_to_choose_from_is_no_choice() -> None:
    assert least_sure(SYSTEM, None, [], 3) == []


def test_of_two_products_the_one_that_was_never_measured_comes_first() -> None:
    """Also where it has nothing but candidates."""
    some = grid("measured", "new")
    values = rates(some, 1)
    calibration = fitted(some, values, list(range(len(some) // 2)))
    assert {some[at].flat()["product"] for at in least_sure(SYSTEM, calibration, some, 4)} == {"new"}


def test_two_new_products_need_not_be_alike() -> None:
    """A run of one does not stand for the other."""
    some = grid("measured", "new", "newer")
    calibration = fitted(some, rates(some, 1), list(range(len(some) // 3)))
    first = [some[at].flat()["product"] for at in least_sure(SYSTEM, calibration, some, 6)]
    assert {"new", "newer"} <= set(first)


def test_a_machine_that_ratings_lead_to_is_less_sure_than_the_measured_one() -> None:
    def hub(**changes: object) -> Configuration:
        return Configuration.from_flat(flat_example("rules_hub") | changes)

    rows = [
        Observation(str(n), "own", hub(queue_managers=n), THROUGHPUT, 40.0 * n**0.5, "all")
        for n in range(1, 7)
    ]
    calibration = calibration_of(fit(Observations.of(HUB, rows)))
    some = [hub(queue_managers=3), hub(queue_managers=3, machine="another", mhz=800)]
    assert least_sure(HUB, calibration, some, 1) == [1]


def test_doubt_of_the_correction_counts(small_model, small_data) -> None:
    """Where physics is sure of everything, a kind of configuration that no row has is still open."""
    known = small_model.calibrations[HUB.name]
    sure = tuple(
        tuple(1e-9 * (row == place) for place, _ in enumerate(one))
        for row, one in enumerate(known.covariance)
    )
    correction = small_model.corrections[HUB.name, THROUGHPUT]
    measured = next(one for one in small_data.configurations.values() if one.workload.family == "rules_hub")
    unlike = Configuration.from_flat(
        {name: value for name, value in measured.flat().items() if value is not None} | {"product": "another"}
    )
    calibration = known.model_copy(update={"covariance": sure})
    assert least_sure(HUB, calibration, [measured, unlike], 1, correction=correction) == [1]


@pytest.mark.parametrize("count", [0, 1, 100])
def test_no_more_are_chosen_than_there_are(count: int) -> None:
    some = grid("one")[:6]
    assert len(least_sure(SYSTEM, None, some, count)) == min(count, 6)
