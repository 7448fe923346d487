"""Results as JSON lines, in the format that `twin/sources/harness/own.py` reads: a run is written when it has
ended, so a file never holds half of one."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import stdev
from typing import Any, TextIO

from twin.harness.driving import Run
from twin.harness.experiments import Point


class Results:
    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file: TextIO = path.open("w", encoding="utf-8")
        self._rates: dict[str, list[float]] = defaultdict(list)

    def write(self, run: Run, repeat: int, problem: str | None = None) -> dict[str, Any]:
        """One run; its summary. `problem`: why it is not to be used."""
        point, summary = run.point, run.meter.summary() | run.figures
        identity = point.configuration.configuration_id
        if problem is None and (rate := summary.get("average_msgs_per_s")):
            self._rates[identity].append(rate)
            if len(self._rates[identity]) > 1:
                summary["rate_noise_pct"] = round(100 * noise(self._rates[identity]), 3)
        self._record("run", _head(point, repeat, problem))
        for sample in run.meter.samples:
            self._record("sample", sample)
        self._record("summary", summary)
        self._file.flush()
        return summary

    def close(self) -> None:
        self._file.close()

    def _record(self, kind: str, values: Mapping[str, Any]) -> None:
        self._file.write(json.dumps({"record": kind, **values}) + "\n")


def noise(rates: list[float]) -> float:
    """Standard deviation of the logarithm over repeats."""
    return stdev(math.log(rate) for rate in rates)


def _head(point: Point, repeat: int, problem: str | None) -> dict[str, Any]:
    columns = point.columns
    offered = columns.get("offered_rate_msgs_per_s")
    head: dict[str, Any] = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "experiment": point.experiment,
        "repeat": repeat,
        # a closed loop hides the broker's pauses: it is told so
        "loop": "closed" if offered is None else "open",
        "configuration": columns,
    }
    if offered is not None:
        head["requested_msgs_per_s"] = offered
    return head | ({} if problem is None else {"problem": problem})
