"""Experiments as data: which configurations they measure, on which brokers, for how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import product
from typing import Any

import yaml
from pydantic import Field

from twin.core.configuration import Configuration
from twin.core.fields import Row
from twin.harness.brokers.interface import Broker
from twin.harness.machine import this_machine

STANDARD = "standard"
# intervals that a run of a given length is counted in: enough to see whether it was steady
_INTERVALS = 10


class Scale(Row):
    """How long a point runs, and how often."""

    warm_up_s: float
    length_s: float
    repeats: int


@dataclass(frozen=True)
class Plan:
    warm_up_s: float
    length_s: float
    interval_s: float
    # where a run is counted in messages: how many in all, and in each interval
    messages: int | None = None
    messages_per_interval: int | None = None


@dataclass(frozen=True)
class Point:
    experiment: str
    driver: str
    broker: str
    configuration: Configuration
    plan: Plan

    @property
    def columns(self) -> dict[str, Any]:
        return {name: value for name, value in self.configuration.flat().items() if value is not None}


class Experiment(Row):
    title: str
    after: str
    driver: str
    family: str
    brokers: tuple[str, ...]
    fixed: dict[str, Any]
    grid: dict[str, list[Any]]
    kinds: tuple[dict[str, Any], ...] = ({},)
    quick: dict[str, list[Any]] = Field(default_factory=dict)
    tiny: dict[str, list[Any]] = Field(default_factory=dict)
    messages: dict[str, tuple[int, int]] = Field(default_factory=dict)
    window_follows: str | None = None

    @property
    def varied(self) -> tuple[str, ...]:
        """Columns in which its points differ."""
        return tuple(dict.fromkeys((*(name for kind in self.kinds for name in kind), *self.grid)))

    def columns(self, scale: str) -> list[dict[str, Any]]:
        """Of every point, without machine and product."""
        grid = self.grid | {"quick": self.quick, "tiny": self.tiny}.get(scale, {})
        found = [
            {"family": self.family, **self.fixed, **kind, **dict(zip(grid, values, strict=True))}
            for kind in self.kinds
            for values in product(*grid.values())
        ]
        if self.window_follows:
            found = [one | {"window": one[self.window_follows]} for one in found]
        return found

    def points(self, name: str, broker: Broker, scale: str) -> list[Point]:
        plan = self._plan(scale)
        platform = {**this_machine(), "product": broker.product, "version": broker.version}
        return [
            Point(name, self.driver, broker.name, Configuration.from_flat({**platform, **columns}), plan)
            for columns in self.columns(scale)
        ]

    def _plan(self, scale: str) -> Plan:
        how = scales()[scale]
        messages, each = self.messages.get(scale, (None, None))
        return Plan(how.warm_up_s, how.length_s, how.length_s / _INTERVALS, messages, each)


@cache
def _declared() -> dict[str, Any]:
    text = resources.files("twin.harness").joinpath("experiments.yaml").read_text(encoding="utf-8")
    declared: dict[str, Any] = yaml.safe_load(text)
    return declared


@cache
def scales() -> dict[str, Scale]:
    return {name: Scale(**how) for name, how in _declared()["scales"].items()}


@cache
def experiments() -> dict[str, Experiment]:
    return {name: Experiment(**one) for name, one in _declared()["experiments"].items()}


def interleaved(points: Sequence[Point], repeats: int) -> list[tuple[int, Point]]:
    """Repeat by repeat through the whole grid, every second time backwards: what drifts with the machine's
    mood falls on all points alike."""
    return [
        (repeat + 1, point)
        for repeat in range(repeats)
        for point in (points if repeat % 2 == 0 else reversed(points))
    ]
