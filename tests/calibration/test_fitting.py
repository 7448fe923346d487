"""A system whose truth is known: what calibration finds of it."""

import dataclasses

import numpy as np
import pytest

from twin.calibration.fitting import fit
from twin.calibration.observations import Observation, Observations, observations_of
from twin.calibration.scores import family_scores, regime_scores
from twin.core.configuration import Configuration
from twin.core.fields import flatten
from twin.queueing.network import Network, cpu
from twin.systems.model import Batch, Demands, Evaluation, Parameter, System, Target
from twin.systems.standard import evaluated

TRUTH = {"fixed_ms": 20.0, "per_kb_ms": 3.0}


def _evaluate(batch: Batch, demands: Demands) -> Evaluation:
    size = batch.number("message_bytes") / 1024
    cost_ms = demands["fixed_ms"] + demands["per_kb_ms"] * size
    return evaluated(Network([cpu(cost_ms / 1000 * batch.cpu_ratio, batch.number("cpus"))], 1.0), batch)


SYSTEM = System(
    name="truth",
    title="A system whose truth is known",
    families=("bank",),
    targets=(Target("throughput_msgs_per_s", 0.02), Target("cpu_busy_pct", 1.0, "points")),
    parameters=(
        Parameter("fixed_ms", "ms", 10.0, 1.0, "a guess"),
        Parameter("per_kb_ms", "ms/KB", 1.0, 1.0, "a guess"),
        Parameter("unused_ms", "ms", 5.0, 1.0, "a guess"),
    ),
    evaluate=_evaluate,
    regimes=lambda batch: np.where(batch.number("message_bytes") < 1000, "small", "large").astype(object),
)


def configuration(message_bytes: int, **changes: object) -> Configuration:
    flat = {
        "family": "bank", "os": "aix", "machine": "RS/6000 J50", "cpus": 8, "mhz": 200, "product": "p",
        "version": "1", "subscribers": 3, "message_bytes": message_bytes, "persistent": True,
        "batch_size": 50,
    }  # fmt: skip
    return Configuration.from_flat(flat | changes)


def rows(noise: float = 0.02, seed: int = 1, sizes: range = range(0, 12_000, 400)) -> list[Observation]:
    random = np.random.default_rng(seed)
    asked = [configuration(size) for size in sizes]
    metrics = _evaluate(Batch(asked), Demands(TRUTH)).metrics
    return [
        Observation(
            f"x:{at}:0", "x", one, "throughput_msgs_per_s", value * np.exp(noise * random.normal()), "g"
        )
        for at, (one, value) in enumerate(zip(asked, metrics["throughput_msgs_per_s"], strict=True))
    ]


def test_the_truth_is_found_within_its_standard_error():
    found = fit(Observations.of(SYSTEM, rows()))
    doubt = np.sqrt(np.diag(found.covariance))
    off = (found.logs[:2] - np.log(list(TRUTH.values()))) / doubt[:2]
    assert np.all(np.abs(off) < 3)
    assert np.all(doubt[:2] < 0.05)


def test_standard_errors_cover_as_often_as_they_say():
    covered = []
    for seed in range(40):
        found = fit(Observations.of(SYSTEM, rows(seed=seed)))
        off = np.abs(found.logs[:2] - np.log(list(TRUTH.values()))) / np.sqrt(np.diag(found.covariance))[:2]
        covered += (off < 1.645).tolist()
    assert 0.8 <= np.mean(covered) <= 0.98


def test_a_parameter_that_no_row_needs_stays_at_its_prior():
    found = fit(Observations.of(SYSTEM, rows()))
    assert found.demands["unused_ms"] == pytest.approx(5.0)
    assert np.sqrt(found.covariance[2, 2]) == pytest.approx(1.0)


def test_a_misprint_does_not_bend_the_fit():
    clean = rows()
    wrong = [dataclasses.replace(clean[5], value=clean[5].value * 3), *clean[:5], *clean[6:]]
    one, other = (fit(Observations.of(SYSTEM, some)) for some in (clean, wrong))
    assert other.demands["fixed_ms"] == pytest.approx(one.demands["fixed_ms"], rel=0.03)
    place = [row.figure_id for row in other.observations.rows].index("x:5:0")
    assert abs(other.residuals[place]) > 20 * 0.02


def test_effective_parameters_count_what_the_rows_decide():
    found = fit(Observations.of(SYSTEM, rows()))
    (score,) = family_scores(found)
    assert (score.n, score.parameters) == (30, 2)
    assert score.effective_parameters == pytest.approx(2, abs=0.1)
    assert score.mape == pytest.approx(1.6, rel=0.7)
    assert not score.interpolation
    assert [one.regime for one in regime_scores(found)] == ["large", "small"]


def test_a_strong_prior_shrinks():
    known = dataclasses.replace(
        SYSTEM, parameters=(*SYSTEM.parameters[:1], Parameter("per_kb_ms", "ms/KB", 1.0, 0.001, "certain"))
    )
    found = fit(Observations.of(known, rows()))
    assert found.demands["per_kb_ms"] == pytest.approx(1.0, rel=0.05)
    assert found.leverage.sum() < 1.5


def test_any_subset_can_be_fitted_and_order_does_not_matter():
    some = rows()[::3]
    one, other = fit(Observations.of(SYSTEM, some)), fit(Observations.of(SYSTEM, some[::-1]))
    assert np.array_equal(one.logs, other.logs)
    assert one.observations.digest == other.observations.digest
    assert one.observations.digest != Observations.of(SYSTEM, rows()).digest


def test_rows_without_a_value_are_left_out():
    zero = dataclasses.replace(rows()[0], figure_id="x:99:0", value=0.0)
    other_metric = dataclasses.replace(rows()[0], figure_id="x:98:0", metric="disk_busy_pct")
    assert len(Observations.of(SYSTEM, [*rows(), zero, other_metric]).rows) == 30


def test_measurements_that_tell_nothing_new_are_no_observations():
    one = configuration(100)
    flat = flatten(one) | {
        "figure_id": "x:1:0", "source_id": "x", "metric": "throughput_msgs_per_s", "value": 40.0,
        "fact_kind": "measurement", "restates": None, "exam_group": "g",
        "configuration_id": one.configuration_id,
    }  # fmt: skip
    kept = observations_of(
        [
            flat,
            flat | {"fact_kind": "claim"},
            flat | {"restates": "x:1:0"},
            flat | {"value": None},
            flat | {"configuration_id": None},
        ]
    )
    assert [row.configuration for row in kept] == [one]
