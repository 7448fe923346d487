"""Advice: remedies that the reports give for a bottleneck, and what the twin says each would bring here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml
from pydantic import Field

from twin.app.answering import Twin
from twin.core.checking import problems_of
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.fields import Row
from twin.core.metrics import METRICS
from twin.core.prediction import THROUGHPUT, Excuse, Prediction

_OFFERED = "offered_rate_msgs_per_s"
_NO_COLUMN = "the twin has no column for it"


class Source(Row):
    """Where a report says so; `printed` stands on that line."""

    source_id: str
    line: int
    printed: str


class Remedy(Row):
    """What helps against a bottleneck. A change is a value, or what becomes of the present one: `times`,
    `at_most`, `at_least`."""

    name: str
    families: tuple[str, ...]
    bottlenecks: tuple[str, ...]
    when: dict[str, Any] = Field(default_factory=dict)
    change: dict[str, Any] | None = None
    # what it is good for: of a time, less is better
    metric: str = THROUGHPUT
    says: str
    sources: tuple[Source, ...]

    def fits(self, flat: Mapping[str, Any], bottleneck: str | None) -> bool:
        wanted = {name: value if isinstance(value, list) else [value] for name, value in self.when.items()}
        return (
            flat["family"] in self.families
            and bottleneck in self.bottlenecks
            and all(flat.get(name) in values for name, values in wanted.items())
        )

    def changes(self, flat: Mapping[str, Any]) -> dict[str, Any]:
        """What is different in this configuration afterwards."""
        after = {name: _changed(flat.get(name), rule) for name, rule in (self.change or {}).items()}
        return {name: value for name, value in after.items() if value != flat.get(name)}


@dataclass(frozen=True)
class Advice:
    remedy: Remedy
    change: Mapping[str, Any] | None
    before: Prediction | Excuse
    after: Prediction | Excuse | None
    # why the twin cannot tell
    excuse: str | None

    @property
    def gain_pct(self) -> float | None:
        """How much faster it gets."""
        if isinstance(self.before, Prediction) and isinstance(self.after, Prediction):
            ratio = self.after.value / self.before.value
            return 100 * ((1 / ratio if METRICS[self.remedy.metric].unit == "s" else ratio) - 1)
        return None


@dataclass(frozen=True)
class Advised:
    bottleneck: str | None
    advice: tuple[Advice, ...]


@cache
def remedies() -> tuple[Remedy, ...]:
    text = resources.files("twin.app").joinpath("advice.yaml").read_text(encoding="utf-8")
    return tuple(Remedy.model_validate(one) for one in yaml.safe_load(text))


def advise(twin: Twin, configuration: Configuration) -> Advised:
    """At full load; what brings most comes first, and last what the twin cannot tell."""
    flat = {
        name: value for name, value in configuration.flat().items() if value is not None and name != _OFFERED
    }
    bottleneck = twin.physics.limits(Columns.of_rows([flat]))[0]
    fitting = [(one, one.changes(flat)) for one in remedies() if one.fits(flat, bottleneck)]
    # what is done already is no advice
    found = [_told(twin, flat, one, change) for one, change in fitting if change or one.change is None]
    found.sort(key=lambda one: -math.inf if one.gain_pct is None else one.gain_pct, reverse=True)
    return Advised(bottleneck, tuple(found))


def _told(twin: Twin, flat: Mapping[str, Any], remedy: Remedy, change: dict[str, Any]) -> Advice:
    problem = _problem(flat, change)
    asked = [flat] if problem else [flat, {**flat, **change}]
    before, *after = twin.answer(Columns.of_rows(asked), remedy.metric).typed()
    answer = after[0] if after else None
    excuse = answer.excuse if isinstance(answer, Excuse) else problem
    return Advice(remedy, change or None, before, answer, excuse)


def _problem(flat: Mapping[str, Any], change: Mapping[str, Any]) -> str | None:
    if not change:
        return _NO_COLUMN
    return "; ".join(f"{field}: {reason}" for field, reason in problems_of({**flat, **change})) or None


def _changed(value: Any, rule: Any) -> Any:
    if not isinstance(rule, dict):
        return rule
    if value is None:
        return None
    ((how, by),) = rule.items()
    match how:
        case "times":
            return max(1, round(value * by)) if isinstance(value, int) else value * by
        case "at_most":
            return min(value, by)
        case "at_least":
            return max(value, by)
    raise ValueError(f"{how!r} is none of times, at_most, at_least")
