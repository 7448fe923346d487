"""The platform's own result file."""

from __future__ import annotations

import json

import pytest

from twin.sources.documents import Refused
from twin.sources.harness import own
from twin.sources.harness.recording import Lines

HEAD = {"record": "run", "configuration": {"family": "point_to_point", "persistent": True, "window": None}}
SAMPLE = {"record": "sample", "at_s": 1.0, "rate_msgs_per_s": 100, "threads": 2}


def read(*records):
    lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
    return own.FORMAT.read(Lines("run.jsonl", ("\n".join(lines) + "\n").encode()))


def test_samples_and_summary_keep_their_lines():
    (run,) = read(HEAD, SAMPLE, {"record": "summary", "average_msgs_per_s": 99.5, "mood": "good"}).runs
    assert run.samples.to_pylist() == [{"line": 2, "at_s": 1.0, "rate_msgs_per_s": 100.0, "threads": 2}]
    assert run.told == {"family": "point_to_point", "persistent": "true"}
    assert [(one.line, one.metric, one.value) for one in run.summary] == [
        (3, "average_msgs_per_s", 99.5), (3, None, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "bad",
    [
        SAMPLE | {"threads": 1.5},
        SAMPLE | {"rate_msgs_per_s": "fast"},
        SAMPLE | {"rate_msgs_per_s": None},
        '{"record": "sample", "rate_msgs_per_s": NaN}',
        '{"record": "sample", "rate_msgs_per_s": 1e999}',
        '{"record": "sample", "threads": 1' + "0" * 400 + "}",
        '{"record": "sample", "rate',
        "[1, 2]",
        "hello",
        {"record": "song"},
    ],
)
def test_a_bad_line_costs_only_itself(bad):
    recording = read(HEAD, SAMPLE, bad, SAMPLE)
    assert recording.runs[0].samples["line"].to_pylist() == [2, 4]
    assert recording.unread_lines == 1


def test_lines_without_a_run_are_refused():
    with pytest.raises(Refused, match="no record of a run"):
        read(SAMPLE)


def test_a_run_that_ended_before_its_time_says_why():
    (run,) = read(HEAD | {"problem": "the connection to NATS is gone"}, SAMPLE).runs
    assert run.problem == "the connection to NATS is gone"
    assert len(run.samples) == 1
