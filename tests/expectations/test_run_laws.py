"""Each law on runs and samples finds a planted fault and passes a clean case."""

from __future__ import annotations

from datetime import date

import pytest

from expectations.gate import PASSED, findings_of, verdict_of
from expectations.run_laws import NEW_SAMPLES, RUN_LAWS, sample_laws
from features.schemas import spark_schema
from twin.core.tables import RUNS, SAMPLES

LAWS = {law.name: law for law in (*RUN_LAWS,)}


def run(line, **changes):
    row = dict.fromkeys(RUNS.columns) | {
        "figure_id": f"harness-x/a:{line}:1-0", "source_id": "harness-x", "document_id": "a", "line": line,
        "printed": "1000.0", "run": 1, "tool": "mqcph", "month": "2026-10", "measured_at": date(2026, 10, 1),
        "document_name": "a.log", "document_sha256": "0", "batch": "b", "ingested_at": date(2026, 11, 1),
        "loop": "closed", "printed_msgs_per_s": 990.0, "total_messages": 59400.0, "run_s": 60.0,
        "summary": "[]", "told": "{}", "unread_lines": 0, "samples": 60, "steady_samples": 55,
        "rate_msgs_per_s": 1000.0, "estimator": "steady_mean", "rate_variation": 0.01, "drift": 0.0,
        "clock_steps_back": 0, "messages_off": 0, "verdict": "stable", "samples_digest": f"d{line}",
        "configuration_id": "c",
    }  # fmt: skip
    return row | changes


@pytest.fixture
def accused(spark):
    def found(law, *rows):
        spark.createDataFrame(list(rows), spark_schema(RUNS)).createOrReplaceTempView("planted")
        broken = spark.sql(LAWS[law].query.format(batch="planted")).collect()
        assert all(row["expected"] and row["message"] for row in broken)
        return sorted(row["line"] for row in broken)

    return found


@pytest.mark.parametrize(
    ("law", "fault"),
    [
        ("run_total", {"total_messages": 70000.0}),
        ("interval_total", {"messages_off": 2}),
        ("clock_went_back", {"clock_steps_back": 1}),
        ("short_of_request",
         {"verdict": "short_of_request", "requested_msgs_per_s": 2000.0, "achieved_share": 0.5}),
        ("not_steady", {"verdict": "drifting", "drift": 0.4}),
        ("not_steady", {"verdict": "idle", "rate_variation": None, "drift": None}),
        ("not_steady", {"verdict": "too_short", "steady_samples": 2, "rate_variation": None}),
        ("measured_in_future", {"measured_at": date(2026, 11, 2)}),
        ("configuration_unknown", {"configuration_id": None, "problem": "clients: missing"}),
    ],
)  # fmt: skip
def test_a_fault_is_found_and_a_clean_run_is_not_accused(accused, law, fault):
    assert accused(law, run(1), run(2, **fault)) == [2]


def test_rounding_of_rate_and_time_is_allowed(accused):
    assert accused("run_total", run(1, total_messages=59400.6), run(2, run_s=60.9)) == []


def test_identical_runs_are_flagged_on_the_later_one(accused):
    other_platform = run(2, samples_digest="d1", measured_at=date(2026, 10, 2), configuration_id="other")
    assert accused("identical_runs", run(1), other_platform, run(3)) == [2]
    # nobody would call two runs that did nothing, or hardly began, the same measurement
    idle = [run(at, samples_digest="i", verdict="idle") for at in (1, 2)]
    short = [run(at, samples_digest="s", samples=3) for at in (3, 4)]
    assert accused("identical_runs", *idle, *short) == []


def test_a_source_that_has_been_silent_for_years_is_told_once(accused):
    old = [run(at, source_id="harness-old", measured_at=date(2020, 1, at)) for at in (1, 2)]
    assert accused("silent_source", run(3), *old) == [2]


def test_findings_of_runs_come_from_great_expectations(settings, spark):
    rows = [run(1), run(2, clock_steps_back=3), run(3, cpu_busy_pct=140.0), run(4, verdict="wonderful")]
    frame = spark.createDataFrame(rows, spark_schema(RUNS))
    found = findings_of(settings, RUNS, frame, RUN_LAWS).collect()
    assert {(row["line"], row["rule"], row["severity"]) for row in found} == {
        (2, "clock_went_back", "error"),
        (3, "cpu_busy_pct_in_range", "error"),
        (4, "verdict_known", "error"),
    }


def sample(line, **changes):
    row = dict.fromkeys(SAMPLES.columns) | {
        "source_id": "harness-x", "document_id": "a", "run": 1, "line": line, "rate_msgs_per_s": 1000.0,
        "interval_s": 2.0, "messages": 2000.0, "tool": "perfharness", "month": "2026-10",
        "cpu_busy_pct": 40.0,
    }  # fmt: skip
    return row | changes


@pytest.mark.parametrize(
    ("fault", "told", "verdict"),
    [
        ({}, 2, PASSED),
        ({}, 3, "broken: samples_complete"),
        ({"messages": 2500.0}, 2, "broken: interval_total"),
        ({"cpu_busy_pct": 101.0, "rate_msgs_per_s": -1.0, "messages": None}, 2,
         "broken: rate_msgs_per_s_in_range, cpu_busy_pct_in_range"),
    ],
)  # fmt: skip
def test_samples_are_judged_as_a_whole(settings, spark, fault, told, verdict):
    rows = [sample(1), sample(2, **fault)]
    frame = spark.createDataFrame(rows, spark_schema(SAMPLES))
    frame.createOrReplaceTempView(NEW_SAMPLES)
    assert verdict_of(settings, SAMPLES, frame, sample_laws(told)) == verdict
