"""What a system's module provides: parameters with priors, and physics from configurations to metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from string import Formatter
from typing import Literal, cast

import numpy as np
import yaml

from twin.core.columns import Columns, Texts
from twin.core.configuration import Configuration
from twin.queueing.network import Array, Flags, Quantity
from twin.queueing.solving import Solution
from twin.simulation.transient import Scenario, Transient
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


# what tells one machine from another; how many of its processors are online is the physics' business
MACHINE = ("machine", "mhz")


@dataclass(frozen=True)
class Effect:
    """What a product or a machine differs by from the others: a factor for every label that the rows have,
    fitted around 1. The spread says how much labels differ, so a label of few rows keeps to the others and
    one that no row has is like any of them, with that doubt."""

    name: str
    # the demands that the factor multiplies; `force_ms` stands for all that are called `force_ms[...]`
    of: tuple[str, ...]
    # a label is the value of these columns, joined by a slash
    columns: tuple[str, ...]
    spread: float
    source: str
    # of a machine that no row has, the transfer's doubt says the same already
    between_machines: bool = False

    def factors(self, batch: Batch, demands: Demands) -> Array:
        absent = 1.0 if self.between_machines else demands[self.parameter(_ANOTHER).name]
        return demands.by(self.name, batch, *self.columns, absent=absent)

    @property
    def of_another(self) -> tuple[Parameter, ...]:
        return () if self.between_machines else (self.parameter(_ANOTHER),)

    def of_labels(self, columns: Columns) -> tuple[Parameter, ...]:
        """One for each label, in their order. An only machine is what others are compared with; an only
        product may still be unlike those that no row has."""
        labels, codes = columns.labels(*self.columns)
        found = sorted(labels[code] for code in set(codes.tolist()))
        if len(found) == 1 and self.columns == MACHINE:
            return (replace(self.parameter(found[0]), spread=_FIXED, source="the only one"),)
        return tuple(self.parameter(label) for label in found)

    def parameter(self, label: str) -> Parameter:
        return Parameter(f"{self.name}[{label}]", "", 1.0, self.spread, self.source)


# the label of what no row tells of
_ANOTHER = "(another)"
# of a parameter that is as good as a constant
_FIXED = 1e-3


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

    def from_scale(self, values: Array) -> Array:
        """The metric itself; a percentage stays one."""
        found: Array = np.clip(values, 0.0, 100.0) if self.scale == "points" else np.exp(values)
        return found


# What every solved network tells beside the metrics that a system explains. No report measures them: they are
# as noisy as the rates that they follow from.
FOLLOWING = (Target("response_ms", 0.05), Target("capacity_msgs_per_s", 0.05))


class Demands:
    """Parameter values by name: one for all configurations of a batch, or one for each."""

    def __init__(self, values: Mapping[str, Quantity]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Array:
        """Typed as an array: one number for all behaves like one."""
        return cast(Array, self._values[name])

    def by(self, group: str, batch: Batch, *columns: str, absent: Quantity = 0.0) -> Array:
        """`group[label]` for each configuration; its label is the value of the columns, joined by a slash.
        A label that has no parameter gets `absent`."""
        labels, codes = batch.labels(*columns)
        values = [self._values.get(f"{group}[{label}]", absent) for label in labels]
        if not any(isinstance(value, np.ndarray) for value in values):
            picked: Array = np.array(values, float)[codes]
            return picked
        picked = np.empty(batch.size)
        for code, value in enumerate(values):
            mine = codes == code
            picked[mine] = value[mine] if isinstance(value, np.ndarray) else value
        return picked


# makes a batch of some configurations, with the demands that were fitted for them
Fitted = Callable[[Sequence[Configuration]], "tuple[Batch, Demands]"]


class Batch:
    """Configurations of a system as columns, and how their machines differ from the measured one."""

    def __init__(
        self, configurations: Columns | Sequence[Configuration], transfer: Transfer | None = None
    ) -> None:
        self.columns = configurations if isinstance(configurations, Columns) else Columns.of(configurations)
        self.size = self.columns.size
        self.number, self.flag, self.is_ = self.columns.number, self.columns.flag, self.columns.is_
        self.labels = self.columns.labels
        self._transfer = transfer or Transfer.none(self.size)
        # what one unit of work takes here, relative to the machine that the demands were fitted on
        self.cpu_ratio, self.network_ratio = self._transfer.cpu, self._transfer.network

    def repeated(self, times: int) -> Batch:
        """All of it several times over, one after the other."""
        rows = np.tile(np.arange(self.size), times)
        return Batch(self.columns.only(rows), self._transfer.only(rows))


@dataclass(frozen=True)
class Evaluation:
    """What the physics says: metrics by name, and the solved network where there is one.
    A metric that does not apply to a configuration is NaN there and is never handed on."""

    metrics: Mapping[str, Array]
    solution: Solution | None = None


@dataclass(frozen=True)
class Refusal:
    """What the physics does not cover. The reason names the column first; {names} in it are filled in."""

    reason: str
    where: Callable[[Batch], Flags]

    def told(self, columns: Columns, at: int) -> str:
        names = [name for _, name, _, _ in Formatter().parse(self.reason) if name]
        return self.reason.format(**columns.row(at, names))


@dataclass(frozen=True)
class System:
    """One measured system: the families it explains and how."""

    name: str
    title: str
    families: tuple[str, ...]
    targets: tuple[Target, ...]
    parameters: tuple[Parameter, ...]
    evaluate: Callable[[Batch, Demands], Evaluation]
    # how products and machines differ; fits have parameters for those that the rows have
    effects: tuple[Effect, ...] = ()
    # what the physics does not cover; the first that applies is told
    refusals: tuple[Refusal, ...] = ()
    # the part of a family that each configuration belongs to, where errors are told by part
    regimes: Callable[[Batch], Texts] | None = None
    # rows that should follow from the others: what to call them when they are foretold, else None
    foretold: Callable[[Configuration], str | None] | None = None
    # what happens when something fails, second by second
    transient: Callable[[Configuration, Fitted, Scenario], Transient] | None = None
    # how many times the greatest measured value of a column the physics is trusted to reach
    reach: Mapping[str, float] = field(default_factory=dict)

    def excuses(self, batch: Batch) -> list[str | None]:
        """Per configuration why the physics does not cover it, in a sentence, or None."""
        found: list[str | None] = [None] * batch.size
        for refusal in reversed(self.refusals):
            for at in np.flatnonzero(refusal.where(batch)):
                found[at] = refusal.told(batch.columns, int(at))
        return found

    def excuse(self, configuration: Configuration) -> str | None:
        return self.excuses(Batch([configuration]))[0]

    def regime(self, configuration: Configuration) -> str:
        return str(self.regimes(Batch([configuration]))[0]) if self.regimes else ""

    @property
    def told(self) -> tuple[Target, ...]:
        """All that can be asked: what it explains, and what follows."""
        explained = {target.metric for target in self.targets}
        return (*self.targets, *(target for target in FOLLOWING if target.metric not in explained))

    def target(self, metric: str) -> Target | None:
        return next((one for one in self.told if one.metric == metric), None)

    def seen_in(self, columns: Columns) -> System:
        """With a parameter for each product and machine that some configurations have."""
        known = {one.name for one in self.parameters}
        found = (one for effect in self.effects for one in effect.of_labels(columns) if one.name not in known)
        return replace(self, parameters=(*self.parameters, *found))

    def at_priors(self) -> Demands:
        return Demands({one.name: one.prior for one in self.parameters})


@cache
def printed_constants(system: str) -> Mapping[str, float]:
    """Constants that a report prints, from `SYSTEM.yaml` beside the module, where each names its origin."""
    text = resources.files("twin.systems").joinpath(f"{system}.yaml").read_text(encoding="utf-8")
    return {name: float(entry["value"]) for name, entry in yaml.safe_load(text).items()}
