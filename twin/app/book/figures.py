"""A printed figure with what the twin said of it before it knew it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from twin.core.metrics import METRICS

# figures of these kinds tell what happened; the others tell of the set-up, or compare
RESULTS = ("measurement", "derived")


@dataclass(frozen=True)
class Answer:
    """What a predictor said of a configuration that it had not seen, or why it said nothing."""

    value: float | None = None
    lo90: float | None = None
    hi90: float | None = None
    excuse: str | None = None

    def as_(self, convert: Callable[[float], float]) -> Answer:
        """In other words; a falling conversion turns the interval round."""
        if self.value is None or self.lo90 is None or self.hi90 is None:
            return self
        low, high = sorted((convert(self.lo90), convert(self.hi90)))
        return Answer(convert(self.value), low, high)


@dataclass(frozen=True)
class Finding:
    rule: str
    severity: str
    expected: str
    message: str


@dataclass(frozen=True)
class Figure:
    figure_id: str
    source_id: str
    line: int
    # the table that it stands in, or the part of the text
    place: str
    header: str
    printed: str
    metric: str
    value: float | None
    value_low: float | None
    value_high: float | None
    source_kind: str
    fact_kind: str
    row_keys: str
    box: str | None
    configuration_id: str | None
    # the columns of its configuration that are told
    settings: Mapping[str, Any]
    quarantined: bool = False
    findings: tuple[Finding, ...] = ()
    # by predictor; one that was not asked is missing
    answers: Mapping[str, Answer] = field(default_factory=dict)

    @property
    def in_table(self) -> bool:
        return self.source_kind != "prose"

    @property
    def unit(self) -> str:
        return METRICS[self.metric].unit or ""

    @property
    def in_points(self) -> bool:
        """Shares of a whole are compared by their difference."""
        return self.unit == "%"

    @cached_property
    def mark(self) -> str | None:
        """error: a rule says that the figure cannot be right; warning: one is suspicious of it."""
        if self.quarantined:
            return "error"
        return "warning" if self.findings else None

    @property
    def is_result(self) -> bool:
        return self.fact_kind in RESULTS

    def error(self, predictor: str) -> float | None:
        """How far the answer is off: in percent of the figure, or in points."""
        answer = self.answers.get(predictor)
        if answer is None or answer.value is None or self.value is None:
            return None
        if self.in_points:
            return answer.value - self.value
        return 100 * (answer.value / self.value - 1) if self.value else None
