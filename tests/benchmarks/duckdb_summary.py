"""The summary of an archive of MQ-CPH logs by DuckDB, from the same files and by the same rule as ours: what
the ingest is measured against.

`python tests/benchmarks/duckdb_summary.py FOLDER` prints how fast it was and the most memory that it had.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import NamedTuple

import duckdb

# A log cut at its commas: of an interval line the first cell has the rate. Three cells, for the summaries.
# Every run begins with its command line. The lines keep their order, so their row numbers tell what stands
# under which.
_LINES = """
CREATE TEMP TABLE lines AS
SELECT CASE WHEN cell[:5] = 'rate=' THEN cell[6:]::DOUBLE END AS rate,
       CASE WHEN cell[:5] <> 'rate=' THEN filename END AS command_in
FROM read_csv({logs}, columns = {{'cell': 'VARCHAR', 'second': 'VARCHAR', 'third': 'VARCHAR'}},
              delim = ',', quote = '', escape = '', null_padding = true, header = false,
              auto_detect = false, filename = true)
WHERE cell[:5] = 'rate=' OR contains(cell, ' -tc ')
"""
_COMMANDS = """
CREATE TEMP TABLE commands AS
SELECT command_in AS file, rowid AS line, row_number() OVER (PARTITION BY command_in ORDER BY rowid) AS run
FROM lines WHERE command_in IS NOT NULL
"""
# a run is known by the row of its command line
_SAMPLES = """
CREATE TEMP TABLE samples AS
SELECT commands.line AS command, lines.rowid - commands.line - 1 AS place, lines.rate
FROM lines ASOF JOIN commands ON lines.rowid >= commands.line
WHERE lines.rate IS NOT NULL
"""
_MIDDLES = """
CREATE TEMP TABLE middles AS
SELECT command, samples, rate
FROM samples JOIN (SELECT command, count(*) AS samples FROM samples GROUP BY command) USING (command)
WHERE place >= samples // 4 AND place < samples - samples // 4
"""
_LEVELS = """
CREATE TEMP TABLE levels AS
SELECT command, any_value(samples) AS samples, any_value(level) AS level,
       greatest(3 * 1.4826 * median(abs(rate - level)), 0.05 * any_value(level)) AS tolerance
FROM middles JOIN (SELECT command, median(rate) AS level FROM middles GROUP BY command) USING (command)
GROUP BY command
"""
# lists of places: half the time of a window over all samples
_BOUNDS = """
CREATE TEMP TABLE bounds AS
SELECT command, samples,
       list_filter(inside, lambda place, i: inside[i + 1] = place + 1)[1] AS first,
       list_filter(inside, lambda place, i: i > 1 AND inside[i - 1] = place - 1)[-1] AS last
FROM (
    SELECT command, any_value(samples) AS samples,
           list(place ORDER BY place) FILTER (abs(rate - level) <= tolerance) AS inside
    FROM samples JOIN levels USING (command)
    GROUP BY command
)
"""
_SUMMARY = """
SELECT commands.file, commands.run, any_value(bounds.samples) AS samples, count(rate) AS steady_samples,
       avg(rate) AS rate_msgs_per_s, stddev_pop(rate) / avg(rate) AS rate_variation,
       quantile_cont(rate, 0.05) AS rate_p5_msgs_per_s,
       quantile_cont(rate, 0.5) AS rate_p50_msgs_per_s,
       quantile_cont(rate, 0.95) AS rate_p95_msgs_per_s
FROM commands
JOIN bounds ON bounds.command = commands.line
LEFT JOIN samples ON samples.command = commands.line AND place BETWEEN bounds.first AND bounds.last
GROUP BY commands.file, commands.run
ORDER BY commands.file, commands.run
"""


class RunSummary(NamedTuple):
    file: str
    run: int
    samples: int
    steady_samples: int
    rate_msgs_per_s: float | None
    rate_variation: float | None
    rate_p5_msgs_per_s: float | None
    rate_p50_msgs_per_s: float | None
    rate_p95_msgs_per_s: float | None


def summary(folder: Path, threads: int = 2) -> list[RunSummary]:
    """A row per run, by file and place in it."""
    logs = str(folder / "*.log").replace("'", "''")
    with duckdb.connect() as database:
        database.execute(f"SET threads = {threads}")
        database.execute(_LINES.format(logs=f"'{logs}'"))
        for statement in (_COMMANDS, _SAMPLES, _MIDDLES, _LEVELS, _BOUNDS):
            database.execute(statement)
        return [RunSummary(*row) for row in database.execute(_SUMMARY).fetchall()]


def main(folder: Path) -> None:
    start, cpu_start = time.perf_counter(), time.process_time()
    rows = summary(folder)
    spent, cpu_spent = time.perf_counter() - start, time.process_time() - cpu_start
    samples = sum(one.samples for one in rows)
    print(
        json.dumps(
            {
                "samples": samples,
                "runs": len(rows),
                "seconds": round(spent, 2),
                # of both threads together: what else the machine does falls less on it
                "cpu_seconds": round(cpu_spent, 2),
                "samples_per_s": round(samples / spent),
                "samples_per_cpu_s": round(samples / cpu_spent),
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
