"""Experiments on real brokers, on a tiny grid: NATS always, the others where they answer."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from dataclasses import replace

import pytest

from twin.core.configuration import Configuration
from twin.harness.brokers.interface import BrokerProblem, Queue
from twin.harness.driving import declared
from twin.harness.experiments import Plan, experiments
from twin.harness.measured import measured
from twin.harness.results import Results
from twin.harness.running import Bench
from twin.sources.documents import Refused
from twin.sources.harness.runs import read_runs

# flows of all kinds take a worker's start each: the kinds that differ most stand for the others here
KINDS = ("trivial", "convert", "aggregation", "insert_delete", "content")


@pytest.fixture(scope="module")
def bench():
    with Bench({"nats": None}, in_a_row=2) as bench:
        yield bench


@pytest.fixture
def results(tmp_path):
    results = Results(tmp_path / "runs.jsonl")
    yield results
    results.close()


def tiny(bench, name):
    points = bench.points([name], "tiny")
    if name != "nodes":
        return points
    texts = [json.dumps(one.columns) for one in points]
    return [next(one for one, text in zip(points, texts, strict=True) if kind in text) for kind in KINDS]


def run(bench, points, results, repeats=1):
    (broker,) = bench.brokers
    return list(bench.run(points, repeats, {broker: results}))


def streams_left(bench):
    async def look():
        import nats

        client = await nats.connect(bench.places["nats"][0].address)
        names = [one.config.name for one in await client.jetstream().streams_info()]
        await client.close()
        return names

    return asyncio.run(look())


@pytest.mark.parametrize("name", [name for name, one in experiments().items() if "nats" in one.brokers])
def test_an_experiment_runs_on_nats(bench, results, name):
    points = tiny(bench, name)
    outcomes = run(bench, points, results)
    assert [one.problem for one in outcomes] == [None] * len(points)
    for one in outcomes:
        assert one.summary["average_msgs_per_s"] > 0
        assert one.summary["broker_cpu_ms_per_msg"] > 0
        if one.point.driver in ("flowing", "raising"):
            assert one.summary["worker_cpu_ms_per_msg"] > 0
    read = read_runs(results.path)
    assert [row["problem"] for row in read.runs] == [None] * len(points)
    assert {row["loop"] for row in read.runs} == {"open" if name == "recovery" else "closed"}
    assert len(measured([results.path])) == len(points)
    assert streams_left(bench) == []


@pytest.mark.parametrize("broker", ["rabbitmq", "mqtt"])
def test_experiments_run_on_other_brokers(broker, results):
    try:
        opened = Bench({broker: None}).__enter__()
    except BrokerProblem as problem:
        pytest.skip(str(problem))
    with opened as bench:
        names = [
            name
            for name in ("put_get", "batch", "window", "prefetch", "fan_out", "content_routing", "hub")
            if broker in experiments()[name].brokers
        ]
        points = [one for name in names for one in tiny(bench, name)]
        outcomes = run(bench, points, results)
    for one in outcomes:
        # Mosquitto does not force messages to disk and says so
        assert one.problem is None or not one.offered
        assert one.problem is not None or one.summary["average_msgs_per_s"] > 0
    assert any(one.problem is None for one in outcomes)


def test_the_recovery_of_connections_is_measured_and_loses_nothing(bench, results):
    (outcome,) = run(bench, tiny(bench, "recovery"), results)
    assert outcome.summary["recovered"] == 1.0
    assert outcome.summary["messages_lost"] == 0
    assert 0 < outcome.summary["channel_recovery_s"] <= outcome.summary["throughput_recovery_s"] + 0.2


def offered(bench, rate, **columns):
    (point, *_) = bench.points(["put_get"], "tiny")
    asked = point.columns | {"offered_rate_msgs_per_s": rate} | columns
    return replace(point, configuration=Configuration.from_flat(asked), plan=Plan(0.2, 1.0, 0.1))


def test_a_load_by_the_clock_keeps_its_rate_and_is_called_open(bench, results):
    (outcome,) = run(bench, [offered(bench, 200.0)], results)
    assert outcome.summary["average_msgs_per_s"] == pytest.approx(200, rel=0.1)
    (row,) = read_runs(results.path).runs
    assert (row["loop"], row["requested_msgs_per_s"]) == ("open", 200.0)


def test_a_run_that_misses_its_rate_is_marked(bench, results):
    (outcome,) = run(bench, [offered(bench, 500_000.0, message_bytes=16_384)], results)
    assert outcome.missed
    (row,) = read_runs(results.path).runs
    assert row["verdict"] in ("short_of_request", "drifting", "varying")
    assert row["achieved_share"] < 0.99


def test_repeats_tell_the_noise_floor(bench, results):
    outcomes = run(bench, tiny(bench, "window"), results, repeats=3)
    assert "rate_noise_pct" not in outcomes[0].summary
    assert outcomes[-1].summary["rate_noise_pct"] > 0
    (one,) = measured([results.path])
    assert len(one.rates) == 3
    assert one.noise > one.error_of_the_median > 0


def test_a_broker_that_goes_away_leaves_a_part_that_is_marked(results):
    with Bench({"nats": None}) as bench:
        (point, *_) = bench.points(["put_get"], "tiny")
        point = replace(point, plan=Plan(0.2, 20.0, 0.1))
        server = bench.places["nats"][0].server

        def kill_later():
            time.sleep(1.5)
            server.kill()

        threading.Thread(target=kill_later).start()
        with pytest.raises(BrokerProblem, match="does not answer"):
            run(bench, [point, point], results)
    (row,) = read_only_row(results)
    assert "gone" in row["problem"]
    assert row["samples"] >= 5


def read_only_row(results):
    """A file in which no run can be used is refused as a whole; what it holds can still be looked at."""
    with pytest.raises(Refused, match="no run can be used"):
        read_runs(results.path)
    lines = [json.loads(line) for line in results.path.read_text().splitlines()]
    samples = sum(line["record"] == "sample" for line in lines)
    return [{"problem": line["problem"], "samples": samples} for line in lines if line["record"] == "run"]


def test_a_queue_that_is_there_with_other_options_is_told_and_stays(bench):
    async def collide():
        broker = await bench.places["nats"][0].reached()
        queue = Queue("twin-collision", persistent=True)
        async with declared(broker, [queue]) as session:
            with pytest.raises(BrokerProblem, match="twin-collision is there already"):
                async with declared(broker, [Queue("twin-other"), Queue("twin-collision")]):
                    pass
            # and it was not removed on the way out
            await session.declare(queue)

    asyncio.run(collide())
    assert streams_left(bench) == []


def test_an_absent_broker_is_told_before_anything_runs():
    with (
        pytest.raises(BrokerProblem, match=r"does not answer at 127\.0\.0\.1:1"),
        Bench({"nats": "nats://127.0.0.1:1"}),
    ):
        pass
