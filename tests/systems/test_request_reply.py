"""Request and reply: bounds that hold whatever is fitted, and the published run that ships as a sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twin.app
from features.derivation import flow_derived
from training.encoding import features_of
from twin.app.describing import flat_example
from twin.calibration.calibrating import fitted_rows
from twin.calibration.calibration import calibration_of
from twin.calibration.fitting import Fit, fit
from twin.calibration.observations import Observation, Observations, observations_of
from twin.calibration.predictor import AnalyticPredictor
from twin.calibration.scores import family_scores
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.fields import flatten
from twin.core.prediction import Excuse, Prediction
from twin.sources.harness.interpreting import interpret_harness
from twin.sources.harness.reading import read_harness
from twin.systems.hub import SYSTEM as HUB
from twin.systems.messaging import SYSTEM
from twin.systems.model import Batch, Evaluation

SAMPLE = Path(twin.app.__file__).parent / "samples" / "cphtestp" / "results.csv"


def asked(**changes: object) -> Configuration:
    return Configuration.from_flat(flat_example("request_reply") | changes)


def evaluated(*configurations: Configuration) -> Evaluation:
    return SYSTEM.evaluate(Batch(configurations), SYSTEM.at_priors())


def rates(*configurations: Configuration) -> list[float]:
    return evaluated(*configurations).metrics["throughput_msgs_per_s"].tolist()


@pytest.fixture(scope="module")
def sample() -> list[Observation]:
    measured = interpret_harness(read_harness(SAMPLE).figures)
    return observations_of(flatten(one) for one in measured)


@pytest.fixture(scope="module")
def calibrated(sample: list[Observation]) -> Fit:
    return fit(Observations.of(SYSTEM, sample))


def test_explains_the_published_run(calibrated: Fit) -> None:
    """A row that lies off its neighbours (8 threads as fast as 4) does not bend the curve."""
    (score,) = family_scores(calibrated)
    assert (score.n, score.metric) == (8, "throughput_msgs_per_s")
    assert (score.median_ape or np.inf) < 6
    assert (score.mape or np.inf) < 10
    assert score.effective_parameters <= score.n / 2


def test_the_log_limits_persistent_requesters_and_commits_share_its_forces(calibrated: Fit) -> None:
    configurations = calibrated.observations.configurations
    solution = SYSTEM.evaluate(Batch(configurations), calibrated.demands).solution
    assert solution is not None
    by_clients = {one.flat()["clients"]: at for at, one in enumerate(configurations)}
    assert solution.bottleneck[by_clients[100]] == "log"
    assert solution.capacity[by_clients[100]] > 2 * solution.capacity[by_clients[1]]


def test_one_requester_waits_for_each_step_in_turn() -> None:
    (rate,) = rates(asked(clients=1, persistent=True, message_bytes=0, log_disk="cached", cpus=1))
    prior = {one.name: one.prior for one in SYSTEM.parameters}
    steps = (
        4 * prior["operation_cpu"] * prior["persistent_cpu"]
        + 4 * prior["forces"] * prior["force_ms[cached]"]
        + 4 * prior["delay"]
    )
    assert rate == pytest.approx(1000 / steps)


def test_nobody_waits_for_a_log_without_persistence() -> None:
    slow, fast = rates(*(asked(persistent=False, log_disk=disk) for disk in ("scsi", "solid_state")))
    assert slow == fast
    assert rates(asked(persistent=True))[0] < fast


def test_processors_are_the_ceiling_of_many_requesters_without_persistence() -> None:
    found = evaluated(asked(persistent=False, clients=10_000, cpus=2))
    assert found.metrics["cpu_busy_pct"][0] == pytest.approx(100, abs=1)
    assert rates(asked(persistent=False, clients=10_000, cpus=4))[0] == pytest.approx(
        2 * found.metrics["throughput_msgs_per_s"][0], rel=0.01
    )


def test_a_narrow_network_limits_large_messages() -> None:
    (rate,) = rates(asked(persistent=False, message_bytes=10**6, network_mbps=80, clients=50))
    assert rate == pytest.approx(5, rel=0.01)  # ten million bytes a second, two messages each way


@settings(deadline=None)
@given(
    clients=st.tuples(st.integers(1, 2000), st.integers(1, 2000)),
    size=st.integers(0, 2**20),
    persistent=st.booleans(),
)
def test_more_requesters_are_not_slower(clients: tuple[int, int], size: int, persistent: bool) -> None:
    fewer, more = rates(
        *(asked(clients=one, message_bytes=size, persistent=persistent) for one in sorted(clients))
    )
    assert more >= fewer * (1 - 1e-9)


def test_before_any_run_the_answer_comes_from_judgement_and_says_so() -> None:
    (answer,) = AnalyticPredictor({}).predict([asked()])
    assert isinstance(answer, Prediction)
    assert "judged" in str(answer.domain_reason)
    assert answer.hi90 > 2 * answer.lo90


def test_after_a_run_its_machine_is_the_reference(calibrated: Fit) -> None:
    calibration = calibration_of(calibrated)
    assert calibration.reference is not None
    assert calibration.reference.machine == "OpenShift container"
    predictor = AnalyticPredictor({SYSTEM.name: calibration})
    run = calibrated.observations.configurations[0]
    at_home, elsewhere = predictor.predict([run, asked()])
    assert isinstance(at_home, Prediction)
    assert isinstance(elsewhere, Excuse)
    assert "has no rating to compare" in elsewhere.excuse


def test_a_rated_run_answers_for_other_machines(sample: list[Observation]) -> None:
    rated = [
        Observation(
            row.figure_id,
            row.source_id,
            Configuration.from_flat(
                {name: value for name, value in row.configuration.flat().items() if value is not None}
                | {"mhz": 3000, "log_disk": "solid_state"}
            ),
            row.metric,
            row.value,
            row.exam_group,
        )
        for row in sample
    ]
    calibration = calibration_of(fit(Observations.of(SYSTEM, rated)))
    (answer,) = AnalyticPredictor({SYSTEM.name: calibration}).predict([asked(mhz=2000, cpus=1)])
    assert isinstance(answer, Prediction)


def test_harness_rows_leave_the_fits_of_the_reports_as_they_were(
    measured: tuple[Observation, ...], sample: list[Observation]
) -> None:
    without = {one.system.name: one for one in fitted_rows(measured)}
    with_sample = {one.system.name: one for one in fitted_rows([*sample, *measured])}
    assert set(with_sample) - set(without) == {"messaging"}
    assert all(with_sample[name].digest == one.digest for name, one in without.items())
    before, after = fit(without[HUB.name]), fit(with_sample[HUB.name])
    assert np.array_equal(before.logs, after.logs)
    assert np.array_equal(before.covariance, after.covariance)


def test_requesters_are_the_messages_under_way() -> None:
    features = features_of(Columns.of([asked(clients=24, persistent=True)]))
    assert features.loc[0, "population"] == 24
    assert features.loc[0, "commits_per_message"] == 1
    assert flow_derived(features)["deliveries"].item() == 1
