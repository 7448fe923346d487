"""Experiments as data."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from twin.core.columns import Columns
from twin.harness.brokers.registry import BROKERS
from twin.harness.experiments import Plan, Point, experiments, interleaved, scales
from twin.systems.model import Batch
from twin.systems.registry import BY_FAMILY


@dataclass
class Anybody:
    name: str
    product: str = "Somebody's"
    version: str = "1"
    process_ids: tuple[int, ...] = ()


def points(name, scale="standard", broker=None):
    experiment = experiments()[name]
    return experiment.points(name, Anybody(broker or experiment.brokers[0]), scale)


# one for each row of the reports' experiments
MEANT = {
    "put_get", "batch", "window", "prefetch", "connections", "fan_out", "subscriber_queues",
    "content_routing", "nodes", "hub", "loopback", "bank", "recovery",
}  # fmt: skip


def test_every_experiment_of_the_reports_is_there():
    assert set(experiments()) == MEANT


def test_what_has_to_run_on_both_brokers_does():
    for name in ("put_get", "batch", "window", "prefetch", "fan_out", "hub"):
        assert {"nats", "rabbitmq"} <= set(experiments()[name].brokers)


@pytest.mark.parametrize("scale", sorted(scales()))
@pytest.mark.parametrize("name", sorted(MEANT))
def test_every_point_is_a_configuration_that_the_physics_covers(name, scale):
    found = points(name, scale)
    assert found
    assert len({one.configuration.configuration_id for one in found}) == len(found)
    assert set(experiments()[name].brokers) <= set(BROKERS)
    configurations = [one.configuration for one in found]
    system = BY_FAMILY[configurations[0].workload.family]
    assert system.excuses(Batch(configurations)) == [None] * len(found)
    rates = system.evaluate(Batch(Columns.of(configurations)), system.at_priors()).metrics
    assert (rates["throughput_msgs_per_s"] > 0).all()


def test_all_node_kinds_of_a_flow_are_measured():
    measured = [one.configuration.workload for one in points("nodes")]
    assert {one.node for one in measured} >= {
        "trivial", "filter", "compute", "database", "aggregation", "flow_order", "route_to_label",
    }  # fmt: skip
    assert {one.esql for one in measured} >= {"simple", "complex", "nested_select", "convert"}
    assert {one.database_operation for one in measured} >= {"insert_delete", "update", "read"}
    assert {one.routing for one in measured} == {None, "topic", "content"}
    formats = {one.input_format for one in measured} & {one.output_format for one in measured}
    assert formats >= {"generic_xml", "mrm_cwf", "mrm_tds"}


def test_the_hub_keeps_a_hundred_waiting_and_records_as_the_report_did():
    (plan,) = {one.plan for one in points("hub")}
    assert (plan.messages, plan.messages_per_interval) == (40_000, 2_000)
    assert {one.configuration.workload.window for one in points("hub")} == {100}


def test_a_batch_is_under_way_as_a_whole():
    for name in ("batch", "loopback"):
        for one in points(name):
            assert one.configuration.workload.window == one.configuration.workload.messages_per_commit


def test_repeats_go_round_the_whole_grid_and_back():
    plan = Plan(0, 1, 0.1)
    a, b, c = (Point(name, "", "", None, plan) for name in "abc")
    order = [(repeat, one.experiment) for repeat, one in interleaved([a, b, c], 3)]
    assert order == [(1, "a"), (1, "b"), (1, "c"), (2, "c"), (2, "b"), (2, "a"), (3, "a"), (3, "b"), (3, "c")]
