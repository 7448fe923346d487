"""What files of the harness amount to: each configuration with its figures over all repeats."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, stdev
from typing import Any

from twin.core.configuration import Configuration
from twin.core.fields import fields_of
from twin.core.prediction import THROUGHPUT
from twin.core.runs import Run
from twin.sources.documents import Refused
from twin.sources.harness.own import record_of
from twin.sources.harness.run_measuring import measurements_of
from twin.sources.harness.runs import read_runs

_NOTHING = dict.fromkeys(field.name for field in fields_of(Run))
_COLUMNS = tuple(field.name for field in fields_of(Configuration))
# of the median of several values whose logarithms are normal, against the error of their mean
_MEDIAN_SPREAD = math.sqrt(math.pi / 2)


@dataclass(frozen=True)
class Measured:
    experiment: str
    configuration: Configuration
    # by metric, a value for each repeat
    figures: Mapping[str, Sequence[float]]

    @property
    def rates(self) -> Sequence[float]:
        return self.figures[THROUGHPUT]

    @property
    def rate(self) -> float:
        return median(self.rates)

    @property
    def noise(self) -> float | None:
        """Standard deviation of the logarithm of a single run; one run does not tell it."""
        return stdev(math.log(rate) for rate in self.rates) if len(self.rates) > 1 else None

    @property
    def error_of_the_median(self) -> float | None:
        return None if self.noise is None else self.noise / math.sqrt(len(self.rates)) * _MEDIAN_SPREAD


def measured(paths: Sequence[Path]) -> list[Measured]:
    """Runs that ended before their time do not count."""
    found: dict[str, Measured] = {}
    figures: dict[str, dict[str, list[float]]] = {}
    for path in paths:
        for experiment, run in _runs(path):
            identity = run["configuration_id"]
            if identity not in found:
                columns = {name: run[name] for name in _COLUMNS if run.get(name) is not None}
                figures[identity] = {}
                found[identity] = Measured(experiment, Configuration.from_flat(columns), figures[identity])
            for one in measurements_of(run):
                if one.value is not None:
                    figures[identity].setdefault(one.metric, []).append(one.value)
    rated = [one for one in found.values() if one.figures.get(THROUGHPUT)]
    if not rated:
        raise Refused("no finished run stands in it")
    return rated


def _runs(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    read = read_runs(path)
    if read is None or read.tool != "twin":
        raise Refused(f"{path.name} was not written by `twin harness run`")
    records = (record_of(line) for line in path.read_bytes().split(b"\n"))
    heads = [record for record in records if record and record.get("record") == "run"]
    experiments = [str(head.get("experiment", "")) for head in heads]
    for experiment, run in zip(experiments, read.runs, strict=True):
        if run["problem"] is None:
            yield experiment, {**_NOTHING, **run}
