"""Logs of PerfHarness and JMSPerfHarness, whose lines depend on the statistics module that was chosen:

- rolling: `rateR=16648.00,threads=10`, in the end the rate of the best window, `maxrateR`;
- basic: `rate=16836.00,total messages=33672,Snapshot period=2,threads=10`, in the end the sum of what the
  threads did, each in its own time, `totalRate`;
- response time: `tps=..,avgResponse(micros)=..,threads=..`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from twin.sources.document import Document
from twin.sources.harness.format import Format, HarnessRow
from twin.sources.harness.iteration_log import plain_number, rows_of
from twin.sources.harness.sidecar import Sidecar

_RATES = {"totalRate": "throughput_msgs_per_s", "maxrateR": "best_window_msgs_per_s"}
_INTERVAL = re.compile(r"(?:rateR=[^=]+,|rate=[^=]+,total messages=|tps=[^=]+,avgResponse).*threads=\d+.*")
_SUMMARY = re.compile(r".*totalIterations=[^=]+,avgDuration=.*")


def _rows(document: Document, sidecar: Sidecar) -> Iterator[HarnessRow]:
    return rows_of(document, sidecar, _is_interval, _RATES)


def _is_interval(text: str) -> bool:
    return _INTERVAL.fullmatch(text.strip()) is not None


def _recognises(first_lines: Sequence[str]) -> bool:
    return any(_is_interval(line) or _SUMMARY.fullmatch(line.strip()) for line in first_lines)


FORMAT = Format(
    name="perfharness",
    suffixes=(".log", ".out", ".txt"),
    recognises=_recognises,
    rows=_rows,
    metrics=_RATES,
    needs_sidecar=True,
    plain_number=plain_number,
)
