"""Logs of MQ-CPH: `rate=2461.00,threads=3` per interval, in the end
`totalIterations=1032,totalSeconds=305.09,avgRate=3.38`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from twin.sources.document import Document
from twin.sources.harness.format import Format, HarnessRow
from twin.sources.harness.iteration_log import plain_number, rows_of
from twin.sources.harness.sidecar import Sidecar

# the mean over the whole run
_RATES = {"avgRate": "throughput_msgs_per_s"}
_INTERVAL = re.compile(r"(?:id=\d+,)?rate=[^=]+,threads=\d+(?:,.*)?")
_SUMMARY = re.compile(r".*totalIterations=[^=]+,totalSeconds=.*")


def _rows(document: Document, sidecar: Sidecar) -> Iterator[HarnessRow]:
    return rows_of(document, sidecar, _is_interval, _RATES)


def _is_interval(text: str) -> bool:
    return _INTERVAL.fullmatch(text.strip()) is not None


def _recognises(first_lines: Sequence[str]) -> bool:
    return any(_is_interval(line) or _SUMMARY.fullmatch(line.strip()) for line in first_lines)


FORMAT = Format(
    name="mqcph",
    suffixes=(".log", ".out", ".txt"),
    recognises=_recognises,
    rows=_rows,
    metrics=_RATES,
    needs_sidecar=True,
    plain_number=plain_number,
)
