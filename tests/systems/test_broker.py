"""The broker: what its report states, limits that must hold for any flow, and what it does not answer."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.calibration.fitting import Fit
from twin.calibration.scores import regime_scores
from twin.core.configuration import Configuration
from twin.queueing.network import Array
from twin.systems.broker import SYSTEM
from twin.systems.model import Batch, Demands, System

PLATFORM: dict[str, Any] = {
    "os": "solaris", "machine": "Sun Fire V880", "cpus": 4, "mhz": 900, "log_disk": "scsi",
    "product": "WebSphere Business Integration Message Broker", "version": "5.0 CSD2",
}  # fmt: skip
TRIVIAL = {"family": "message_flow", "node": "trivial", "message_bytes": 1024, "persistent": False}
XML = {"input_format": "generic_xml", "output_format": "generic_xml"}
COMPUTE = TRIVIAL | XML | {"node": "compute", "esql": "complex", "compute_nodes": 1, "message_bytes": 4096}
CONVERT = COMPUTE | {"esql": "convert"}
VERY_COMPLEX = COMPUTE | {"program_repeats": 5}
FILTER = TRIVIAL | {"node": "filter", "input_format": "generic_xml"}
ROUTE = TRIVIAL | {"node": "route_to_label", "destinations": 1}
DATABASE = TRIVIAL | {"node": "database", "database_operation": "update"}
TOPIC = {
    "family": "publication", "routing": "topic", "subscribers": 1, "message_bytes": 1024, "persistent": False,
}  # fmt: skip
FLOWS = [TRIVIAL, COMPUTE, CONVERT, VERY_COMPLEX, FILTER, ROUTE, DATABASE, TOPIC]


def configured(workload: dict[str, Any], **changes: Any) -> Configuration:
    return Configuration.from_flat(PLATFORM | workload | changes)


@pytest.fixture(scope="module")
def fit(fitted: Callable[[System], Fit]) -> Fit:
    return fitted(SYSTEM)


@pytest.fixture(scope="module")
def demands(fit: Fit) -> Demands:
    return fit.demands


def metric(demands: Demands, *asked: Configuration, name: str = "throughput_msgs_per_s") -> Array:
    return SYSTEM.evaluate(Batch(asked), demands).metrics[name]


def rate(demands: Demands, workload: dict[str, Any], **changes: Any) -> float:
    return float(metric(demands, configured(workload, **changes))[0])


def test_the_report_is_explained(fit: Fit) -> None:
    rates = [one for one in regime_scores(fit) if one.metric == "throughput_msgs_per_s"]
    errors = {(one.family, one.regime): one.mape for one in rates}
    marks = {"non-persistent": 2.5, "persistent": 2.0, "parallel": 5.0}
    for (_, regime), error in errors.items():
        assert regime is not None
        assert error is not None
        assert error < marks[regime]


@pytest.mark.parametrize("workload", FLOWS)
@pytest.mark.parametrize("column", ["message_bytes", "cpus"])
def test_more_bytes_never_help_and_more_processors_never_harm(
    demands: Demands, workload: dict[str, Any], column: str
) -> None:
    steps = (
        [0, 1, 1024, 4096, 2**14, 2**20, 2**30] if column == "message_bytes" else [1, 2, 3, 4, 8, 64, 1024]
    )
    for copies in ({}, {"instances": 8}, {"execution_groups": 6}, {"instances": 4, "persistent": True}):
        rates = metric(demands, *(configured(workload | copies, **{column: step}) for step in steps))
        rising = np.diff(rates) / rates[:-1]
        assert (rising <= 1e-9).all() if column == "message_bytes" else (rising >= -1e-9).all()


@pytest.mark.parametrize(
    ("workload", "column"),
    [
        (TOPIC, "subscribers"),
        (ROUTE, "destinations"),
        (COMPUTE, "compute_nodes"),
        (COMPUTE, "program_repeats"),
        (COMPUTE, "copy_nodes"),
    ],
)
@pytest.mark.parametrize("persistent", [False, True])
def test_more_work_takes_longer(
    demands: Demands, workload: dict[str, Any], column: str, persistent: bool
) -> None:
    asked = [configured(workload, persistent=persistent, **{column: step}) for step in (1, 2, 10, 50, 100)]
    assert (np.diff(metric(demands, *asked)) <= 1e-9).all()
    assert (np.diff(metric(demands, *asked, name="cpu_ms_per_msg")) > 0).all()


@settings(deadline=None, max_examples=40)
@given(
    flow=st.sampled_from(FLOWS),
    size=st.integers(0, 2**30),
    cpus=st.integers(1, 1024),
    instances=st.integers(1, 1024),
    groups=st.integers(1, 1024),
    persistent=st.booleans(),
)
def test_any_flow_has_a_rate(
    demands: Demands,
    flow: dict[str, Any],
    size: int,
    cpus: int,
    instances: int,
    groups: int,
    persistent: bool,
) -> None:
    asked = configured(
        flow,
        message_bytes=size,
        cpus=cpus,
        instances=instances,
        execution_groups=groups,
        persistent=persistent,
    )
    metrics = SYSTEM.evaluate(Batch([asked]), demands).metrics
    assert all(np.isfinite(metrics[target.metric]).all() for target in SYSTEM.targets)
    assert 0 < metrics["cpu_busy_pct"][0] <= 100 + 1e-6


def test_a_million_subscribers_take_long(demands: Demands) -> None:
    assert 0 < rate(demands, TOPIC, subscribers=1_000_000) < 0.01


def test_one_node_does_the_work_of_five_at_less_cost(demands: Demands) -> None:
    assert rate(demands, VERY_COMPLEX) / rate(demands, COMPUTE, compute_nodes=5) == pytest.approx(
        1.27, rel=0.05
    )


def test_topic_routing_is_cheaper_than_content_routing(demands: Demands) -> None:
    assert rate(demands, TOPIC) > 2 * rate(demands, TOPIC, routing="content")


def test_a_long_destination_list_costs(demands: Demands) -> None:
    assert rate(demands, ROUTE) / rate(demands, ROUTE, destinations=100) == pytest.approx(
        1262 / 434, rel=0.06
    )


def test_two_copies_do_more_than_twice_and_execution_groups_more_than_instances(demands: Demands) -> None:
    alone = rate(demands, VERY_COMPLEX)
    assert rate(demands, VERY_COMPLEX, instances=2) > 2 * alone
    assert rate(demands, VERY_COMPLEX, execution_groups=2) > 2 * alone
    assert rate(demands, VERY_COMPLEX, execution_groups=4) > 1.1 * rate(demands, VERY_COMPLEX, instances=4)
    assert rate(demands, VERY_COMPLEX, instances=8) < 1.1 * rate(demands, VERY_COMPLEX, instances=4)


def test_persistent_rates_hang_on_the_log_and_not_on_the_flow(demands: Demands) -> None:
    cheap, dear = rate(demands, CONVERT, persistent=True), rate(demands, VERY_COMPLEX, persistent=True)
    assert cheap == pytest.approx(dear, rel=0.02)
    assert rate(demands, CONVERT, persistent=True, log_disk="cached") > 2 * cheap
    assert rate(demands, VERY_COMPLEX, persistent=True, execution_groups=8) > 3 * dear


def test_what_limits_each_flow(demands: Demands) -> None:
    asked = [
        configured(VERY_COMPLEX),
        configured(VERY_COMPLEX, execution_groups=8),
        configured(CONVERT, persistent=True),
        configured(TRIVIAL, message_bytes=65536),
    ]
    solution = SYSTEM.evaluate(Batch(asked), demands).solution
    assert solution is not None
    assert list(solution.bottleneck) == ["copies of the flow", "cpu", "log", "clients"]


def test_a_log_disk_that_is_not_told_is_the_plain_one(demands: Demands) -> None:
    untold = configured(CONVERT, persistent=True, log_disk=None)
    assert metric(demands, untold)[0] == rate(demands, CONVERT, persistent=True)


@pytest.mark.parametrize(
    ("workload", "named"),
    [
        (TRIVIAL | {"esql": "simple", "compute_nodes": 1}, "esql"),
        (COMPUTE | {"esql": "none"}, "esql"),
        (COMPUTE | {"compute_nodes": 0}, "esql"),
        (COMPUTE | {"input_format": "mrm_tds"}, "input_format"),
        (CONVERT | {"output_format": "none"}, "output_format"),
        (CONVERT | {"input_format": "swift_mt543"}, "input_format"),
        (CONVERT | {"compute_nodes": 5}, "compute_nodes"),
        (FILTER | {"input_format": "mrm_cwf"}, "input_format"),
        (TRIVIAL | {"destinations": 3}, "destinations"),
        (DATABASE | {"database_operation": "none"}, "database_operation"),
        (TRIVIAL | {"node": "aggregation", "instances": 4}, "instances"),
        (TOPIC | {"routing": "content", "subscribers": 10}, "subscribers"),
        (TRIVIAL | {"persistent": True, "message_bytes": 2**20}, "message_bytes"),
    ],
)
def test_what_was_never_measured_is_excused(workload: dict[str, Any], named: str) -> None:
    assert named in (SYSTEM.excuse(configured(workload)) or "")


@pytest.mark.parametrize("workload", FLOWS)
def test_measured_flows_are_not_excused(workload: dict[str, Any]) -> None:
    assert SYSTEM.excuse(configured(workload)) is None
