"""What a system's module provides: parameters with priors, and physics from configurations to metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

import numpy as np
import yaml

from twin.core.configuration import Configuration
from twin.queueing.network import Array, Flags
from twin.queueing.solving import Solution
from twin.systems.transfer import Transfer, ratings


@dataclass(frozen=True)
class Parameter:
    """A positive quantity that calibration fits. Before any row is seen its logarithm is normal around the
    prior's: a spread of 0.1 means about 10% either way, 1 a factor of e, which is next to no knowledge."""

    name: str
    unit: str
    prior: float
    spread: float
    source: str


def write_times(group: str) -> tuple[Parameter, ...]:
    """One forced write in ms for each kind of log disk, measured or not: `group[kind]`."""
    return tuple(
        Parameter(f"{group}[{kind}]", "ms", disk["write_ms"], disk["doubt"], disk["source"])
        for kind, disk in ratings()["log_disk"].items()
    )


@dataclass(frozen=True)
class Target:
    """A metric that the physics explains, and how far two runs of one configuration lie apart (one standard
    deviation): of the logarithm, or in percentage points."""

    metric: str
    noise: float
    scale: Literal["relative", "points"] = "relative"

    def to_scale(self, values: Array) -> Array:
        """In the scale in which errors are compared; what is not positive has no logarithm and is NaN."""
        return values if self.scale == "points" else np.log(np.where(values > 0, values, np.nan))

    def from_scale(self, value: float) -> float:
        """The metric itself; a percentage stays one."""
        return min(max(value, 0.0), 100.0) if self.scale == "points" else math.exp(value)


# What every solved network tells beside the metrics that a system explains. No report measures them: they are
# as noisy as the rates that they follow from.
FOLLOWING = (Target("response_ms", 0.05), Target("capacity_msgs_per_s", 0.05))


class Demands:
    """Parameter values by name."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def by(self, group: str, batch: Batch, *columns: str, absent: float = 0.0) -> Array:
        """`group[label]` for each configuration; its label is the value of the columns, joined by a slash.
        A label that has no parameter gets `absent`."""
        labels, codes = batch.labels(*columns)
        picked: Array = np.array([self._values.get(f"{group}[{label}]", absent) for label in labels])[codes]
        return picked


class Batch:
    """Configurations of a system as columns."""

    def __init__(self, configurations: Sequence[Configuration], transfer: Transfer | None = None) -> None:
        self.configurations = configurations
        self.size = len(configurations)
        self._flat = [one.flat() for one in configurations]
        self._columns: dict[str, Any] = {}
        transfer = transfer or Transfer.none(self.size)
        # what one unit of work takes here, relative to the machine that the demands were fitted on
        self.cpu_ratio, self.network_ratio = transfer.cpu, transfer.network

    def number(self, name: str, absent: float = np.nan) -> Array:
        """A column as numbers; what a configuration does not tell is `absent`."""
        key = f"{name}|{absent}"
        if key not in self._columns:
            values = [row.get(name) for row in self._flat]
            self._columns[key] = np.array([absent if value is None else float(value) for value in values])
        column: Array = self._columns[key]
        return column

    def flag(self, name: str) -> Flags:
        return self.number(name, absent=0.0) > 0

    def is_(self, name: str, *values: str) -> Flags:
        """Where a column has one of these values."""
        labels, codes = self.labels(name)
        found: Flags = np.array([label in values for label in labels], dtype=bool)[codes]
        return found

    def labels(self, *columns: str) -> tuple[list[str], np.ndarray[Any, Any]]:
        """The distinct values of some columns, joined by a slash, and which one each configuration has."""
        key = "/".join(columns)
        if key not in self._columns:
            joined = ["/".join(str(row.get(name)) for name in columns) for row in self._flat]
            self._columns[key] = np.unique(joined, return_inverse=True) if joined else ([], np.zeros(0, int))
        labels, codes = self._columns[key]
        return list(labels), codes


@dataclass(frozen=True)
class Evaluation:
    """What the physics says: metrics by name, and the solved network where there is one.
    A metric that does not apply to a configuration is NaN there and is never handed on."""

    metrics: Mapping[str, Array]
    solution: Solution | None = None


def _no_excuse(configuration: Configuration) -> str | None:  # noqa: ARG001
    return None


@dataclass(frozen=True)
class System:
    """One measured system: the families it explains and how."""

    name: str
    title: str
    families: tuple[str, ...]
    targets: tuple[Target, ...]
    parameters: tuple[Parameter, ...]
    evaluate: Callable[[Batch, Demands], Evaluation]
    # what the physics does not cover, in a sentence
    excuse: Callable[[Configuration], str | None] = _no_excuse
    # the part of a family that a configuration belongs to, where errors are told by part
    regime: Callable[[Configuration], str] | None = None
    # rows that should follow from the others: what to call them when they are foretold, else None
    foretold: Callable[[Configuration], str | None] | None = None
    # how many times the greatest measured value of a column the physics is trusted to reach
    reach: Mapping[str, float] = field(default_factory=dict)

    @property
    def told(self) -> tuple[Target, ...]:
        """All that can be asked: what it explains, and what follows."""
        explained = {target.metric for target in self.targets}
        return (*self.targets, *(target for target in FOLLOWING if target.metric not in explained))

    def target(self, metric: str) -> Target | None:
        return next((one for one in self.told if one.metric == metric), None)

    def at_priors(self) -> Demands:
        return Demands({one.name: one.prior for one in self.parameters})


@cache
def printed_constants(system: str) -> Mapping[str, float]:
    """Constants that a report prints, from `SYSTEM.yaml` beside the module, where each names its origin."""
    text = resources.files("twin.systems").joinpath(f"{system}.yaml").read_text(encoding="utf-8")
    return {name: float(entry["value"]) for name, entry in yaml.safe_load(text).items()}
