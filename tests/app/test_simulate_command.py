"""`twin simulate`: on a broker whose demands are stated, and on the failures of fitted ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from twin.app.calibration import write_calibrations
from twin.app.cli import app
from twin.app.describing import flat_example
from twin.calibration.calibration import calibration_of
from twin.systems import cluster, hub


@pytest.fixture(scope="module")
def calibration(fitted, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("calibration") / "demands.json"
    write_calibrations(file, [calibration_of(fitted(one)) for one in (cluster.SYSTEM, hub.SYSTEM)])
    return file


@pytest.fixture
def ask(calibration, tmp_path):
    def asked(family: str, *arguments: str, **values: object):
        config = tmp_path / "config.json"
        config.write_text(json.dumps(flat_example(family) | values))
        return CliRunner().invoke(
            app, ["simulate", str(config), "--calibration", str(calibration), *arguments]
        )

    return asked


def test_a_steady_state_is_told_beside_the_formula(ask):
    answer = ask("generic", "--json", "--runs", "4", "--messages", "5000")
    assert answer.exit_code == 0, answer.output
    said = json.loads(answer.output)
    rate = said["simulated"]["throughput_msgs_per_s"]
    assert rate["lo95"] < rate["value"] < rate["hi95"]
    tail = [said["simulated"][f"response_p{share}_ms"]["value"] for share in (50, 90, 95, 99)]
    assert tail == sorted(tail)
    gap = 100 * (rate["value"] / said["formula"]["throughput_msgs_per_s"] - 1)
    assert said["gap_pct"]["throughput_msgs_per_s"] == pytest.approx(gap)
    assert said["settled"] is True
    assert ask("generic", "--json", "--runs", "4", "--messages", "5000").output == answer.output


def test_a_person_sees_the_gap_and_the_percentiles(ask):
    answer = ask("rules_hub", "--runs", "3", "--messages", "5000")
    assert answer.exit_code == 0
    for word in ("response_p99_ms", "gap", "cpu, busy", "limited by cpu"):
        assert word in answer.output


def test_an_unstable_load_is_told_with_the_growth_of_its_backlog(ask):
    said = json.loads(ask("rules_hub", "--json", offered_rate_msgs_per_s=1000).output)
    assert said["unstable"]["growth_msgs_per_s"] == pytest.approx(770, rel=0.05)
    spoken = ask("rules_hub", offered_rate_msgs_per_s=1000)
    assert spoken.exit_code == 0
    assert "unstable" in spoken.output


@pytest.mark.parametrize("suffix", [".png", ".svg", ".gif"])
def test_a_failure_is_told_over_time_and_drawn(ask, tmp_path, suffix):
    chart = tmp_path / f"storm{suffix}"
    answer = ask("cluster", "--transient", "--chart", str(chart), channel_pairs=300, trusted=True)
    assert answer.exit_code == 0, answer.output
    assert "All 600 channels run" in answer.output
    assert chart.stat().st_size > 10_000


def test_a_failed_box_is_told_as_json(ask):
    said = json.loads(ask("rules_hub", "--transient", "--json", "--takeover", "20").output)
    assert said["metrics"]["normal_again_s"] > 20
    assert {len(one["values"]) for one in said["courses"]} == {len(said["time_s"])}
    assert [one["what"] for one in said["marks"]] == [
        "a box fails", "the other takes over", "backlog worked off",
    ]  # fmt: skip


def test_the_cliff_is_seen_by_varying_the_pairs(calibration, tmp_path):
    config = tmp_path / "config.json"
    tuned = {"trusted": True, "tuned": True, "start_method": "strmqm", "suppressed_messages": 11}
    config.write_text(json.dumps(flat_example("cluster") | tuned))
    answer = CliRunner().invoke(app, [
        "whatif", str(config), "--vary", "channel_pairs=1000,2000,3000,4000", "--json", "--simulated",
        "--metric", "channel_recovery_s", "--calibration", str(calibration),
    ])  # fmt: skip
    *times, never = json.loads(answer.output)
    assert [one["value"] for one in times] == sorted(one["value"] for one in times)
    assert {one["predictor"] for one in times} == {"simulated"}
    assert "8000 channels still fail" in never["excuse"]


@pytest.mark.parametrize(
    ("family", "arguments", "values", "reason"),
    [
        ("generic", ["--transient"], {}, "only in rules_hub, cluster"),
        ("generic", ["--chart", "a.png"], {}, "--transient"),
        ("cluster", ["--transient", "--chart", "a.txt"], {}, "none of .png"),
        ("generic", ["--messages", "10"], {}, "messages per run are 10"),
        ("generic", ["--runs", "1"], {}, "runs"),
        ("generic", [], {"clients": 0}, "clients"),
        ("generic", [], {"demand_cpu_ms": 0, "demand_serial_ms": 0, "demand_log_ms": 0, "demand_delay_ms": 0},
         "costs nothing"),
        ("generic", [], {"clients": 1_000_000, "memory_mb": None}, "more than a simulation can hold"),
        ("cluster", ["--transient"], {"channel_pairs": 900_000}, "channel_pairs"),
        ("rules_hub", ["--transient", "--takeover", "1e9"], {}, "takeover"),
    ],
)  # fmt: skip
def test_bad_questions_are_exit_code_2_with_a_reason(ask, family, arguments, values, reason):
    answer = ask(family, *arguments, **values)
    assert answer.exit_code == 2, answer.output
    assert reason in answer.output


def test_an_interrupt_stops_a_long_simulation_at_once(calibration, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps(flat_example("generic")))
    command = [sys.executable, "-m", "twin.app", "simulate", config, "--calibration", calibration]
    running = subprocess.Popen(
        [*map(str, command), "--messages", "20000000", "--runs", "100"],
        env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    # imports and, on a fresh machine, compiling come first
    time.sleep(8)
    assert running.poll() is None
    running.send_signal(signal.SIGINT)
    asked_at = time.monotonic()
    assert running.wait(timeout=30) == 130
    assert time.monotonic() - asked_at < 10
