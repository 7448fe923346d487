"""Result files of the OpenMessaging Benchmark. They follow their description; no run printed them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from twin.core.metrics import METRICS
from twin.sources.documents import Refused
from twin.sources.harness.openmessaging import FORMAT
from twin.sources.harness.recording import Lines

RECORDING = Path(__file__).parent / "recordings" / "openmessaging.json"


def read(text):
    return FORMAT.read(Lines("run.json", text if isinstance(text, bytes) else text.encode()))


def changed(**values):
    """The recording with other values; None takes a key away."""
    whole = json.loads(RECORDING.read_text()) | values
    (run,) = read(json.dumps({key: value for key, value in whole.items() if value is not None})).runs
    return run


def columns(run):
    return run.samples.to_pydict()


def test_every_figure_comes_back_with_its_line():
    result = read(RECORDING.read_bytes())
    (run,) = result.runs
    assert (result.unread_lines, run.line) == (0, 1)
    assert columns(run) == {
        "line": [11, 12, 12],
        "at_s": [10.0, 20.0, 30.0],
        "interval_s": [10.0, 10.0, 10.0],
        "rate_msgs_per_s": [49877.125, 49990.75, 50008.0],
        "sent_msgs_per_s": [50012.25, 49998.5, 50001.0],
        "backlog_msgs": [1351.0, 1430.0, 1360.0],
        "latency_mean_ms": [3.5, 3.25, 3.125],
        "latency_p50_ms": [3.0, 2.9, 2.8],
        "latency_p75_ms": [4.0, 3.9, 3.8],
        "latency_p95_ms": [6.0, 5.9, 5.8],
        "latency_p99_ms": [9.0, 8.9, 8.8],
        "latency_max_ms": [31.0, 30.0, 29.0],
    }
    assert [(one.line, one.header, one.printed, one.metric, one.value) for one in run.summary] == [
        (18, "aggregatedPublishLatencyAvg", "2.291", None, 2.291),
        (19, "aggregatedPublishLatency99999pct", "40.125", None, 40.125),
        (20, "aggregatedPublishDelayLatencyAvg", "60.25", None, 60.25),
        (21, "aggregatedPublishDelayLatency50pct", "57", None, 57.0),
        (36, "aggregatedEndToEndLatencyAvg", "3.2916", "latency_mean_ms", 3.2916),
        (37, "aggregatedEndToEndLatency50pct", "2.9", "latency_p50_ms", 2.9),
        (38, "aggregatedEndToEndLatency75pct", "3.9", "latency_p75_ms", 3.9),
        (39, "aggregatedEndToEndLatency95pct", "5.9", "latency_p95_ms", 5.9),
        (40, "aggregatedEndToEndLatency99pct", "8.9", "latency_p99_ms", 8.9),
        (41, "aggregatedEndToEndLatency999pct", "14.9", "latency_p999_ms", 14.9),
        (42, "aggregatedEndToEndLatency9999pct", "28.0", "latency_p9999_ms", 28.0),
        (43, "aggregatedEndToEndLatency99999pct", "30.5", None, 30.5),
        (44, "aggregatedEndToEndLatencyMax", "31.0", "latency_max_ms", 31.0),
    ]
    assert {one.metric for one in run.summary} - {None} <= {*METRICS}
    assert run.told == {
        "family": "point_to_point",
        "message_bytes": "1024",
        "producers": "6",
        "consumers": "8",
        "queues": "32",
    }
    assert (run.loop, run.requested_msgs_per_s, run.measured_at, run.problem) == ("paced", None, None, None)
    types = {field.name: str(field.type) for field in run.samples.schema}
    assert types.pop("line") == "int64"
    assert {*types.values()} == {"double"}


def test_a_file_tells_what_it_says():
    run = changed(topics=None, sampleRateMillis=500, beginTime="2024-01-02T03:04:05Z")
    assert run.told == {"family": "point_to_point", "message_bytes": "1024"}
    assert columns(run)["at_s"] == [0.5, 1.0, 1.5]
    assert run.measured_at == "2024-01-02"
    assert changed(subscriptionsPerTopic=3).told["consumers"] == "24"


def test_times_of_publishing_stand_where_nobody_receives():
    none = {key: [0.0] * 3 for key in json.loads(RECORDING.read_text()) if key.startswith("endToEnd")}
    run = changed(consumersPerTopic=0, consumeRate=[0.0, 0.0, 0.0], **none)
    assert columns(run)["rate_msgs_per_s"] == columns(run)["sent_msgs_per_s"]
    assert (columns(run)["latency_mean_ms"], columns(run)["latency_p50_ms"]) == (
        [2.5, 2.25, 2.125],
        [2.1, 2.0, 1.9],
    )
    metrics = {one.header: one.metric for one in run.summary}
    assert metrics["aggregatedPublishLatencyAvg"] == "latency_mean_ms"
    assert metrics["aggregatedEndToEndLatencyAvg"] is None
    # who has consumers that get nothing has received nothing
    assert columns(changed(consumeRate=[0.0, 0.0, 0.0]))["rate_msgs_per_s"] == [0.0, 0.0, 0.0]


def test_rates_of_zero_are_kept():
    run = changed(consumeRate=[0.0, 0.0], publishRate=[0.0, 0.0], consumersPerTopic=None)
    assert columns(run)["rate_msgs_per_s"] == columns(run)["sent_msgs_per_s"] == [0.0, 0.0]


def test_numbers_that_are_none_are_left_out():
    run = changed(
        consumeRate=[None, float("nan"), 5.0], backlog=["NaN", 1, 2], endToEndLatencyMax=[float("inf"), 1, 2]
    )
    assert columns(run)["rate_msgs_per_s"] == [None, None, 5.0]
    assert columns(run)["backlog_msgs"] == [None, 1.0, 2.0]
    assert columns(run)["latency_max_ms"] == [None, 1.0, 2.0]


def test_arrays_may_differ_in_length():
    run = changed(consumeRate=[1.0], backlog=[1, 2, 3, 4], endToEndLatencyAvg=None)
    assert columns(run)["rate_msgs_per_s"] == [1.0, None, None]
    assert columns(run)["backlog_msgs"] == [1.0, 2.0, 3.0]
    assert "latency_mean_ms" not in columns(run)


def test_lines_are_true_whatever_the_layout_and_the_letters_are():
    text = (
        '\n{"driver": "Käse\\"{[,",\n\n"publishRate": [\n1,\n2\n], "é":\n{"a": [[]]},\n"aggregatedX": 1.50}'
    )
    (run,) = read(text).runs
    assert (run.line, columns(run)["line"]) == (2, [5, 6])
    assert columns(run)["rate_msgs_per_s"] == [1.0, 2.0]
    assert [(one.line, one.printed, one.value) for one in run.summary] == [(9, "1.50", 1.5)]
    (run,) = read(text.replace("\n", "\r\n")).runs
    assert columns(run)["line"] == [5, 6]


@pytest.mark.parametrize("cut", [100, 330, -3])
def test_a_file_that_was_cut_off_is_refused(cut):
    whole = RECORDING.read_text()
    line = whole[:cut].count("\n") + 1
    with pytest.raises(Refused, match=f"^run.json line {line}: no JSON, "):
        read(whole[:cut])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"publishRate": [], "consumeRate": []}', "no samples"),
        ('{"publishRate": 5}', "no samples"),
        ('{"publishRate": ' + "[" * 100_000, "nested too deep"),
        ('["publishRate"]', "no JSON object"),
        ('{"publishRate": [1,]}', "line 1: no JSON, Expecting value"),
    ],
)
def test_a_file_without_samples_is_refused(text, message):
    with pytest.raises(Refused, match=message):
        read(text)


def test_a_file_is_recognised_by_its_first_lines():
    text = RECORDING.read_text()
    assert FORMAT.recognises(text.split("\n")[:50])
    assert FORMAT.recognises(["", text[:400]])
    # keys may have been sorted
    assert FORMAT.recognises(['{"aggregatedEndToEndLatency50pct": 2.9,'])
    perftest = (RECORDING.parent / "perftest.json").read_text()
    others = (
        perftest,
        '{"family": "request_reply", "message_bytes": 1024}',
        '{"record": "run"}',
        "publishRate",
        "",
    )
    assert not any(FORMAT.recognises(other.split("\n")) for other in others)
    assert not FORMAT.recognises([])
    assert RECORDING.suffix in FORMAT.suffixes
