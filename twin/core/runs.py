"""Runs of a load harness: their interval samples as printed, and what each run amounts to."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from twin.core.configuration import Configuration, ConfigurationId
from twin.core.fields import Row, quantity
from twin.core.measurement import FigureId, Line, Printed, SourceId

# Closed: each client waits before it sends again, so a pause of the broker is also one of the load and hides
# in the latencies. Paced: the same with a rate set. Open: sent by the clock, timed from the intended moment.
Loop = Literal["closed", "paced", "open", "unknown"]
# what a rate is an estimate of: steady_mean is ours, the others are printed
Estimator = Literal["steady_mean", "average", "thread_sum", "best_window"]
Verdict = Literal[
    "stable",
    "varying",
    "drifting",
    "short_of_request",
    "clock_went_back",
    "too_short",
    "idle",
    "summary_only",
]

Tool = Annotated[str, quantity("Format of the file", example="mqcph")]
Month = Annotated[str, quantity("Month of the measurement", example="2026-11")]
DocumentId = Annotated[
    str, quantity("File and the beginning of its hash: files of a source are told apart by it")
]
RunNumber = Annotated[int, quantity("Run in its file, from 1", ge=1)]
Rate = Annotated[
    float,
    quantity("Done per second: round trips, messages received, or sent where nobody receives",
             unit="msgs/s", ge=0),
]  # fmt: skip
SentRate = Annotated[float, quantity("Sent per second", unit="msgs/s", ge=0)]
Busy = Annotated[float, quantity("Busy share of all processors of the broker", unit="%", ge=0, le=100)]


def _latency(which: str) -> object:
    return quantity(which, unit="ms", ge=0)


class Latencies(Row):
    """Times of messages in an interval; over a steady state their mean weighted by messages, but the least of
    the least and the greatest of the greatest."""

    latency_min_ms: Annotated[float, _latency("Least latency")] | None = None
    latency_mean_ms: Annotated[float, _latency("Mean latency")] | None = None
    latency_p50_ms: Annotated[float, _latency("Median latency")] | None = None
    latency_p75_ms: Annotated[float, _latency("75th percentile of latency")] | None = None
    latency_p95_ms: Annotated[float, _latency("95th percentile of latency")] | None = None
    latency_p99_ms: Annotated[float, _latency("99th percentile of latency")] | None = None
    latency_max_ms: Annotated[float, _latency("Greatest latency")] | None = None


class Sample(Row):
    """Bronze: one interval of a run as printed. A column that a tool does not print is left out."""

    source_id: SourceId
    document_id: DocumentId
    run: RunNumber
    line: Line
    at_s: Annotated[float, quantity("End of the interval, on the run's clock", unit="s")] | None = None
    interval_s: Annotated[float, quantity("Length of the interval", unit="s", ge=0)] | None = None
    rate_msgs_per_s: Rate | None = None
    sent_msgs_per_s: SentRate | None = None
    messages: Annotated[float, quantity("Done in the interval", ge=0)] | None = None
    threads: Annotated[int, quantity("Threads of the harness that ran", ge=0)] | None = None
    backlog_msgs: Annotated[float, quantity("Sent and not yet received")] | None = None
    cpu_busy_pct: Busy | None = None
    latencies: Latencies
    tool: Tool
    month: Month


class RunOrigin(Row):
    """Where a run stands."""

    # of its rate: the key that findings and measurements refer to
    figure_id: FigureId
    source_id: SourceId
    line: Line
    printed: Printed
    document_id: DocumentId
    run: RunNumber
    tool: Tool
    month: Month
    measured_at: Annotated[date, quantity("When it was measured")]
    document_name: Annotated[str, quantity("File it was read from", example="run.log")]
    document_sha256: Annotated[str, quantity("Hash of the file")]
    description_sha256: Annotated[str, quantity("Hash of the files that describe it")] | None = None
    batch: Annotated[str, quantity("Ingestion that brought it")]
    ingested_at: Annotated[date, quantity("Day of that ingestion")]


class RunAsPrinted(Row):
    """What a run says about itself."""

    loop: Annotated[Loop, quantity("How the load was made")]
    requested_msgs_per_s: (
        Annotated[float, quantity("Rate that was asked for", unit="msgs/s", gt=0)] | None
    ) = None
    printed_msgs_per_s: Annotated[float, quantity("Rate of its summary", unit="msgs/s", ge=0)] | None = None
    total_messages: Annotated[float, quantity("Done in the whole run, as its summary says", ge=0)] | None = (
        None
    )
    run_s: Annotated[float, quantity("Length of the run, as its summary says", unit="s", ge=0)] | None = None
    summary: Annotated[str, quantity("Figures of its summary as printed: a JSON list")]
    told: Annotated[str, quantity("Configuration as told: a JSON object")]
    problem: Annotated[str, quantity("Why its configuration is not known")] | None = None
    unread_lines: Annotated[int, quantity("Lines of its file that are none of the format", ge=0)]


class SteadyState(Row):
    """The part of a run in which it was steady, and whether it was."""

    samples: Annotated[int, quantity("Intervals printed", ge=0)]
    steady_samples: Annotated[int, quantity("Intervals of the steady state", ge=0)]
    steady_first_line: Annotated[int, quantity("Its first line", ge=1)] | None = None
    steady_last_line: Annotated[int, quantity("Its last line", ge=1)] | None = None
    rate_msgs_per_s: Rate | None = None
    estimator: Annotated[Estimator, quantity("What that rate is")] | None = None
    sent_msgs_per_s: SentRate | None = None
    rate_variation: (
        Annotated[float, quantity("Standard deviation of the intervals' rates / mean", ge=0)] | None
    ) = None
    rate_p5_msgs_per_s: (
        Annotated[float, quantity("5th percentile of the intervals", unit="msgs/s", ge=0)] | None
    ) = None
    rate_p50_msgs_per_s: Annotated[float, quantity("Their median", unit="msgs/s", ge=0)] | None = None
    rate_p95_msgs_per_s: Annotated[float, quantity("Their 95th percentile", unit="msgs/s", ge=0)] | None = (
        None
    )
    drift: (
        Annotated[float, quantity("Change of the rate from start to end of the steady state / mean")] | None
    ) = None
    achieved_share: Annotated[float, quantity("Rate / requested rate", ge=0)] | None = None
    cpu_busy_pct: Busy | None = None
    clock_steps_back: Annotated[int, quantity("Times that the clock went back", ge=0)] = 0
    messages_off: Annotated[int, quantity("Intervals whose rate x time is not their messages", ge=0)] = 0
    latencies: Latencies
    verdict: Annotated[Verdict, quantity("Whether the run can be believed")]
    samples_digest: Annotated[str, quantity("Hash of all figures of its intervals")] | None = None


class Run(Row):
    """Silver: one run of a harness."""

    origin: RunOrigin
    as_printed: RunAsPrinted
    steady: SteadyState
    configuration_id: ConfigurationId | None = None
    configuration: Configuration | None = None
