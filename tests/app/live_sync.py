"""The twin kept in step with a real broker, which is slowed by a known share.

A NATS server stands behind a proxy that delays every message by some milliseconds: the rate of few messages
under way follows from that delay. It wants a machine without other work, which changes rates as a slower
broker does, so it is no part of `make test`: `make live`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager

import pandas as pd
import pytest

from training.live_exam import data_of
from training.model import TwinModel
from training.registry import Registration, Registry, champion_model
from training.training import example_of
from twin.app import synchronising
from twin.app.synchronising import Watch, synchronise
from twin.calibration.observations import observations_of
from twin.core.prediction import THROUGHPUT
from twin.harness.brokers.nats_server import running_nats_server
from twin.harness.experiments import experiments
from twin.harness.measured import measured
from twin.harness.proxy import proxied
from twin.harness.results import Results
from twin.harness.running import Bench
from twin.sources.harness.runs import read_runs

DELAY_S, SLOWED = 0.01, 0.7
WINDOWS, SIZES = (1, 2, 4), (128, 1024, 4096)
# periods until it must be found, and until the twin must be right again
FOUND_WITHIN, RIGHT_WITHIN = 3, 10


@contextmanager
def delayed(port):
    """A proxy in a thread of its own: runs have loops of theirs."""
    started, ended = threading.Event(), asyncio.Event()
    held = {}

    async def serve():
        held["loop"] = asyncio.get_running_loop()
        async with proxied("127.0.0.1", port) as proxy:
            held["proxy"] = proxy
            proxy.delay = DELAY_S
            started.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(10)
    try:
        yield held["proxy"]
    finally:
        held["loop"].call_soon_threadsafe(ended.set)
        thread.join()


@pytest.fixture(scope="module")
def line():
    with running_nats_server() as server, delayed(server.port) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def bench(line):
    with Bench({"nats": f"nats://127.0.0.1:{line.port}"}) as bench:
        yield bench


@pytest.fixture
def candidates(bench, monkeypatch):
    grid = {"persistent": [False], "window": list(WINDOWS), "message_bytes": list(SIZES)}
    experiment = experiments()["window"]
    fixed = {name: value for name, value in experiment.fixed.items() if name != "message_bytes"}
    changed = experiment.model_copy(update={"grid": grid, "fixed": fixed, "tiny": {}})
    points = changed.points("window", bench.brokers["nats"], "tiny")
    monkeypatch.setattr(synchronising, "_candidates", lambda *_: [one.configuration for one in points])
    return points


@pytest.fixture
def champion(bench, candidates, settings, tmp_path):
    """Learned from this very broker while it was quick."""
    results = Results(tmp_path / "learned.jsonl")
    for _ in bench.run(candidates, 2, {"nats": results}):
        pass
    results.close()
    data = data_of(measured([results.path]))
    registry = Registry(settings)
    example, exam = example_of(candidates[0].configuration), pd.DataFrame({"value": [1.0]})
    version = registry.register(
        TwinModel.fit(data).registered_as("1"), Registration("first", {}, {}, exam, {}, "", None, example)
    )
    registry.promote(version, "the first")
    return version


def test_a_slowed_broker_is_found_and_the_twin_is_right_again(settings, bench, line, candidates, champion):
    watch = Watch("nats", probes=3, policy="auto", scale="tiny")
    line.delay = DELAY_S
    status = "learning"
    for _ in range(12):
        if status == "quiet":
            break
        status = synchronise(settings, watch, bench).status
    assert status == "quiet"
    line.delay = DELAY_S / SLOWED
    found = right = None
    for period in range(1, RIGHT_WITHIN + 1):
        report = synchronise(settings, watch, bench)
        if report.status == "diverged" and found is None:
            found = period
        if report.version is not None:
            found, right = found or period, period
            break
    assert found is not None
    assert found <= FOUND_WITHIN
    assert right is not None, report.message
    registry = Registry(settings)
    assert str(registry.champion().version) == report.version != champion
    told = registry.told(registry.champion())
    assert "slower" in report.message
    assert "times" in told.reason
    # by how much depends on what else the machine did in both states
    assert told.scores["shift_pct"] == pytest.approx(100 * (SLOWED - 1), abs=15)
    # of what was never probed since, too
    slower = champion_model(settings).predict([one.configuration for one in candidates])
    results = Results(settings.home / "check.jsonl")
    checked = list(bench.run(candidates, 1, {"nats": results}))
    results.close()
    errors = sorted(
        abs(one.value / outcome.summary["average_msgs_per_s"] - 1)
        for one, outcome in zip(slower, checked, strict=True)
    )
    assert errors[len(errors) // 2] < 0.10
    # and what is measured from now on belongs to another broker than before
    synchronise(settings, watch, bench)
    files = sorted((settings.home / "inbox").glob("probes-*.jsonl"))
    before, after = (read_runs(path).runs[0] for path in (files[0], files[-1]))
    assert after["source_id"] == f"{before['source_id']}-epoch-2"
    rows = [_as_measured(one) for one in (before, after)]
    assert [one.source_id for one in observations_of(rows)] == [after["source_id"]]


def _as_measured(run):
    return {
        **run, "figure_id": run["source_id"], "fact_kind": "measurement", "restates": None,
        "exam_group": "live", "metric": THROUGHPUT, "value": run["rate_msgs_per_s"],
    }  # fmt: skip


def test_a_person_may_want_to_judge(settings, bench, line, candidates, champion):
    watch = Watch("nats", probes=3, policy="person", scale="tiny")
    line.delay = DELAY_S
    for _ in range(8):
        synchronise(settings, watch, bench)
    line.delay = DELAY_S / SLOWED
    reports = []
    while len(reports) < RIGHT_WITHIN and not (reports and reports[-1].version):
        reports.append(synchronise(settings, watch, bench))
    waiting = reports[-1].version
    assert waiting is not None, reports[-1].message
    registry = Registry(settings)
    assert str(registry.champion().version) == champion
    assert "waits for `twin models promote`" in reports[-1].message
    # it is proposed once, and settled by whoever promotes it
    assert synchronise(settings, watch, bench).version is None
    registry.promote(waiting, "looked at the broker")
    assert synchronise(settings, watch, bench).status == "learning"
    (kept,) = (settings.home / "sync").glob("*.json")
    assert json.loads(kept.read_text())["epoch"] == 2
