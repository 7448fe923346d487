"""The laws that figures obey. A law is one query over a table that returns the rows that break it.

Every query selects the columns of a finding except its rule and severity. `{batch}` is the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Law:
    name: str
    severity: Literal["error", "warning"]
    description: str
    query: str


def _half_digit(printed: str) -> str:
    """Half a unit of the last printed digit: how far the true value may lie from the printed one."""
    return f"0.5 * pow(10, -length(regexp_extract({printed}, '[.]([0-9]*)', 1)))"


UTILISATION = Law(
    "utilisation_law",
    "error",
    "CPU ms per message = busy share x processors / rate, as exactly as the printed digits allow",
    f"""
    WITH line AS (
      SELECT source_id, line, configuration_id, max(cpus) AS cpus,
        max(CASE WHEN metric = 'throughput_msgs_per_s' THEN value END) AS rate,
        max(CASE WHEN metric = 'throughput_msgs_per_s' THEN {_half_digit("printed")} END) AS rate_half,
        max(CASE WHEN metric = 'cpu_busy_pct' THEN value END) AS busy,
        max(CASE WHEN metric = 'cpu_busy_pct' THEN {_half_digit("printed")} END) AS busy_half
      FROM {{batch}} GROUP BY source_id, line, configuration_id
    )
    SELECT cost.figure_id, source_id, line, cost.printed,
      format_string('%.2f', busy * line.cpus * 10 / rate) AS expected,
      format_string('%.2f%% of %d processors at %.2f msgs/s', busy, line.cpus, rate) AS message
    FROM {{batch}} AS cost JOIN line USING (source_id, line, configuration_id)
    WHERE cost.metric = 'cpu_ms_per_msg' AND (
      cost.value + {_half_digit("cost.printed")} < (busy - busy_half) * line.cpus * 10 / (rate + rate_half)
      OR cost.value - {_half_digit("cost.printed")} > (busy + busy_half) * line.cpus * 10 / (rate - rate_half)
    )
    """,
)

MEASUREMENT_LAWS: tuple[Law, ...] = (UTILISATION,)
