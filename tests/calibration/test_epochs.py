"""A live broker that has changed: figures of before are another broker's."""

from __future__ import annotations

import pytest

from twin.app.describing import flat_example
from twin.calibration.observations import observations_of


def row(source_id):
    return {
        **flat_example("point_to_point"),
        "figure_id": f"{source_id}:1", "source_id": source_id, "configuration_id": "c",
        "metric": "cpu_busy_pct", "value": 1.0, "fact_kind": "measurement", "restates": None,
        "exam_group": "g",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sources", "learned"),
    [
        (["harness-nats-box"], ["harness-nats-box"]),
        (["harness-nats-box", "harness-nats-box-epoch-2"], ["harness-nats-box-epoch-2"]),
        (["harness-a-epoch-10", "harness-a-epoch-9", "harness-a"], ["harness-a-epoch-10"]),
        # another broker has not changed
        (["harness-a-epoch-2", "harness-b"], ["harness-a-epoch-2", "harness-b"]),
        # a name that only looks like it
        (["report-epoch-two", "report"], ["report-epoch-two", "report"]),
    ],
)
def test_only_the_newest_epoch_of_a_broker_is_learned_from(sources, learned):
    assert [one.source_id for one in observations_of([row(one) for one in sources])] == learned
