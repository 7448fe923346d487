"""The laws that harness runs and their interval samples obey.

What needs a run's intervals side by side was counted when its file was read and stands in the run's own row:
no law has to sort millions of samples.
"""

from __future__ import annotations

from typing import Literal

from expectations.laws import Law

# a printed rate and a printed time are rounded, and threads do not end all at once
_TOTAL = 0.02
# judged: a source that has been silent for so long tells of another product than the one that runs
_SILENT_DAYS = 730
# fewer intervals may agree by chance
_ALIKE = 5


# a view of the samples that have just come; the columns' rules need their extremes only
NEW_SAMPLES = "new_samples"
# Great Expectations warns of a query that does not name its batch
_EXTREMES = "/* whose extremes are {batch} */"


def sample_laws(told: int) -> tuple[Law, ...]:
    """`told`: how many samples the runs of the ingestion say they have."""
    return (
        Law(
            "samples_complete",
            "error",
            "There are as many samples as the runs have intervals",
            f"SELECT count(*) AS samples FROM {NEW_SAMPLES} {_EXTREMES} HAVING count(*) <> {told}",
        ),
        Law(
            "interval_total",
            "warning",
            "Rate x length of an interval is the messages of the interval",
            f"""
    SELECT source_id, document_id, line FROM {NEW_SAMPLES} {_EXTREMES}
    WHERE abs(rate_msgs_per_s * interval_s - messages) > greatest(0.01 * messages, 1)
    """,
        ),
    )


def _of_runs(
    name: str,
    severity: Literal["error", "warning"],
    description: str,
    where: str,
    expected: str,
    message: str,
) -> Law:
    return Law(
        name,
        severity,
        description,
        f"""
    SELECT figure_id, source_id, line, printed, {expected} AS expected, {message} AS message
    FROM {{batch}} WHERE {where}
    """,
    )


IDENTICAL_RUNS = Law(
    "identical_runs",
    "warning",
    "Two runs do not have the same intervals",
    f"""
    WITH alike AS (
      SELECT *, row_number() OVER same AS place, first(document_name) OVER same AS other,
        first(line) OVER same AS other_line, first(configuration_id) OVER same AS other_configuration
      FROM {{batch}} WHERE samples >= {_ALIKE} AND verdict <> 'idle'
      WINDOW same AS (PARTITION BY samples_digest ORDER BY measured_at, figure_id)
    )
    SELECT figure_id, source_id, line, printed, 'a measurement of its own' AS expected,
      format_string('the %d intervals of %s, line %d again%s', samples, other, other_line,
        CASE WHEN configuration_id <=> other_configuration THEN '' ELSE ', for another configuration' END
      ) AS message
    FROM alike WHERE place > 1
    """,
)

SILENT_SOURCE = Law(
    "silent_source",
    "warning",
    "A source tells something new every two years",
    f"""
    SELECT max_by(figure_id, measured_at) AS figure_id, source_id, max_by(line, measured_at) AS line,
      max_by(printed, measured_at) AS printed, 'a newer run' AS expected,
      concat('the newest run of this source is of ', string(max(measured_at))) AS message
    FROM {{batch}} GROUP BY source_id
    HAVING datediff((SELECT max(ingested_at) FROM {{batch}}), max(measured_at)) > {_SILENT_DAYS}
    """,
)

RUN_LAWS: tuple[Law, ...] = (
    _of_runs(
        "run_total",
        "warning",
        "Rate x length of a run is what the run did in total",
        f"abs(printed_msgs_per_s * run_s - total_messages) > greatest({_TOTAL} * total_messages, 1)",
        "format_string('%.0f', printed_msgs_per_s * run_s)",
        "format_string('%.0f in total, %.2f per s for %.2f s', total_messages, printed_msgs_per_s, run_s)",
    ),
    _of_runs(
        "interval_total",
        "warning",
        "Rate x length of an interval is the messages of the interval",
        "messages_off > 0",
        "'none'",
        "format_string('%d of %d intervals did something else than rate x time', messages_off, samples)",
    ),
    _of_runs(
        "clock_went_back",
        "error",
        "Time does not go back: rates that were made with such a clock are none",
        "clock_steps_back > 0",
        "'none'",
        "format_string('the clock went back %d times', clock_steps_back)",
    ),
    _of_runs(
        "short_of_request",
        "warning",
        "A run reaches the rate that was asked for",
        "verdict = 'short_of_request'",
        "format_string('%.0f', requested_msgs_per_s)",
        "format_string('%.0f%% of the rate that was asked for', 100 * achieved_share)",
    ),
    _of_runs(
        "not_steady",
        "warning",
        "A run has a steady state",
        "verdict IN ('varying', 'drifting', 'too_short', 'idle')",
        "'a steady rate'",
        "CASE verdict WHEN 'idle' THEN 'nothing was done' WHEN 'too_short' THEN "
        "format_string('%d of %d intervals are steady', steady_samples, samples) ELSE "
        "format_string('%s: the rate varies by %.0f%% and moves by %.0f%%', verdict, 100 * rate_variation, "
        "100 * drift) END",
    ),
    _of_runs(
        "measured_in_future",
        "error",
        "A run was measured before it was read",
        "measured_at > ingested_at",
        "concat('at most ', string(ingested_at))",
        "concat('measured on ', string(measured_at))",
    ),
    _of_runs(
        "configuration_unknown",
        "warning",
        "What was measured is known",
        "problem IS NOT NULL",
        "'a configuration'",
        "problem",
    ),
    IDENTICAL_RUNS,
    SILENT_SOURCE,
)  # fmt: skip
