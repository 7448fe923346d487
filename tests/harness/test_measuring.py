"""Counting a run: intervals, latencies from the intended moment, processor time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from twin.harness import measuring
from twin.harness.measuring import Meter, ProcessorTime


@pytest.fixture
def time(monkeypatch):
    """A clock that goes when it is told to."""

    class Clock:
        now = 100.0

        def __call__(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(measuring, "clock", clock)
    return clock


def test_what_comes_in_the_warm_up_does_not_count(time):
    meter = Meter()
    for _ in range(50):
        meter.sent()
        meter.done(time.now - 3.0)
    meter.begin()
    time.now += 2.0
    meter.sent(4)
    for _ in range(3):
        meter.done(time.now - 0.010)
    meter.tick()
    (sample,) = meter.samples
    assert sample["rate_msgs_per_s"] == 1.5
    assert sample["sent_msgs_per_s"] == 2.0
    assert sample["messages"] == 3
    assert meter.summary()["latency_max_ms"] == pytest.approx(10.0, rel=0.002)


def test_a_pause_shows_in_every_message_that_it_held_up(time):
    """By the clock one message is due each 10 ms; the broker stands still for a second. Timed from the moment
    of sending, as a closed loop does, one message in a hundred would be slow."""
    meter = Meter()
    started = time.now
    due = [started + number * 0.01 for number in range(100)]
    time.now += 1.0
    for moment in due:
        meter.done(moment)
    meter.tick()
    assert meter.summary()["latency_p50_ms"] == pytest.approx(500, rel=0.02)
    assert meter.summary()["latency_p99_ms"] > 980


def test_percentiles_of_a_whole_run_are_those_of_all_its_messages(time):
    meter = Meter()
    for interval in range(10):
        time.now += 1.0
        for number in range(100):
            meter.done(time.now - (1 + interval * 100 + number) / 1000)
        meter.tick()
    summary = meter.summary()
    assert summary["messages"] == 1000
    assert summary["latency_p50_ms"] == pytest.approx(500, rel=0.01)
    assert summary["latency_p95_ms"] == pytest.approx(950, rel=0.01)
    assert [one["latency_p50_ms"] for one in meter.samples] == pytest.approx(
        [50.5 + 100 * interval for interval in range(10)], abs=0.1
    )


def test_processor_time_is_told_apart_for_broker_and_driver():
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        meter = Meter(broker=ProcessorTime([busy.pid]), driver=ProcessorTime([os.getpid()]))
        started = measuring.clock()
        while meter.processors["broker"].seconds() < 0.3 and measuring.clock() < started + 30:
            meter.done()
        meter.tick()
    finally:
        busy.kill()
        busy.wait()
    summary = meter.summary()
    assert summary["broker_cpu_ms_per_msg"] * summary["messages"] >= 250
    assert summary["driver_cpu_ms_per_msg"] > 0
    parts = summary["broker_cpu_ms_per_msg"] + summary["driver_cpu_ms_per_msg"]
    assert summary["cpu_ms_per_msg"] == pytest.approx(parts)


def test_a_broker_that_is_not_to_be_seen_has_no_processor_time():
    meter = Meter(broker=ProcessorTime([]), driver=ProcessorTime([os.getpid()]))
    meter.done()
    meter.tick()
    assert "broker_cpu_ms_per_msg" not in meter.summary()
    assert "cpu_ms_per_msg" not in meter.summary()


def test_a_process_that_was_killed_takes_nothing_back():
    gone = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    broker = ProcessorTime([gone.pid])
    while broker.seconds() < 0.1:
        pass
    meter = Meter(broker=broker)
    gone.kill()
    gone.wait()
    meter.done()
    meter.tick()
    assert meter.summary().get("broker_cpu_ms_per_msg", 0.0) == 0.0
