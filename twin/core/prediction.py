"""An answer, or an excuse why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Protocol

import numpy as np

from twin.core.columns import Codes, Columns, Flags, Numbers, Texts, without_text
from twin.core.configuration import Configuration
from twin.core.fields import Row, quantity

THROUGHPUT = "throughput_msgs_per_s"


class Prediction(Row):
    """One predictor's answer for one configuration."""

    target: Annotated[str, quantity("The predicted metric", example="throughput_msgs_per_s")]
    value: Annotated[float, quantity("Predicted value in the metric's unit")]
    lo50: Annotated[float, quantity("Lower end of the 50% interval")]
    hi50: Annotated[float, quantity("Upper end of the 50% interval")]
    lo90: Annotated[float, quantity("Lower end of the 90% interval")]
    hi90: Annotated[float, quantity("Upper end of the 90% interval")]
    predictor: Annotated[str, quantity("Who answered", example="hybrid")]
    bottleneck: Annotated[str, quantity("What limits the rate", example="cpu")] | None = None
    utilisation: (
        Annotated[str, quantity("Busy share of each resource: a JSON object", example='{"cpu": 0.93}')] | None
    ) = None
    in_domain: Annotated[bool, quantity("Every column lies inside what the model was trained on")]
    domain_reason: Annotated[str, quantity("Which column lies outside")] | None = None
    model_version: Annotated[str, quantity("Registered model version, or the physics and figures it holds")]
    table_version: Annotated[int, quantity("Version of the training table", ge=0)]


class Excuse(Row):
    """Why there is no prediction."""

    target: Annotated[str, quantity("The metric that was asked for", example="throughput_msgs_per_s")]
    predictor: Annotated[str, quantity("Who was asked", example="hybrid")]
    excuse: Annotated[str, quantity("Why there is no answer")]


@dataclass(frozen=True)
class Answers:
    """What one predictor says of one metric, in columns: where there is an excuse there is no value."""

    predictor: str
    target: str
    table_version: int
    value: Numbers
    lo50: Numbers
    hi50: Numbers
    lo90: Numbers
    hi90: Numbers
    bottleneck: Texts
    utilisation: Texts
    domain_reason: Texts
    model_version: Texts
    excuse: Texts

    @classmethod
    def none(
        cls, size: int, predictor: str, target: str, table_version: int = 0, excuse: Any = None
    ) -> Answers:
        """Nothing but excuses: one for all, or one for each."""
        numbers = [np.full(size, np.nan) for _ in range(5)]
        texts = [np.full(size, None, dtype=object) for _ in range(5)]
        texts[-1][:] = excuse
        return cls(predictor, target, table_version, *numbers, *texts)

    def put(self, rows: Codes, part: Answers) -> None:
        """Take over the answers of some rows."""
        for field in fields(self)[3:]:
            getattr(self, field.name)[rows] = getattr(part, field.name)

    @property
    def size(self) -> int:
        return len(self.value)

    @property
    def answered(self) -> Flags:
        return without_text(self.excuse)

    def columns(self) -> dict[str, Any]:
        """As the columns of a table of predictions."""
        in_domain = np.array([one is None for one in self.domain_reason], dtype=object)
        versions = np.full(self.size, self.table_version, dtype=object)
        for column in (in_domain, versions):
            column[~self.answered] = None
        return {
            "target": np.full(self.size, self.target, dtype=object),
            **{name: getattr(self, name) for name in ("value", "lo50", "hi50", "lo90", "hi90")},
            "predictor": np.full(self.size, self.predictor, dtype=object),
            "bottleneck": self.bottleneck,
            "utilisation": self.utilisation,
            "in_domain": in_domain,
            "domain_reason": self.domain_reason,
            "model_version": self.model_version,
            "table_version": versions,
            "excuse": self.excuse,
        }

    def typed(self) -> list[Prediction | Excuse]:
        columns = self.columns()
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        return [_typed(row) for row in rows]


def _typed(row: dict[str, Any]) -> Prediction | Excuse:
    if row["excuse"] is not None:
        return Excuse(target=row["target"], predictor=row["predictor"], excuse=row["excuse"])
    return Prediction.model_validate({name: value for name, value in row.items() if name != "excuse"})


class Predictor(Protocol):
    """Whatever answers questions; a comparison of predictors is one loop."""

    def predict(self, configurations: Sequence[Configuration]) -> list[Prediction | Excuse]: ...

    def answer(self, columns: Columns, target: str) -> Answers: ...
