"""An answer, or an excuse why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Protocol

from twin.core.configuration import Configuration
from twin.core.fields import Row, quantity


class Prediction(Row):
    """One predictor's answer for one configuration."""

    target: Annotated[str, quantity("The predicted metric", example="throughput_msgs_per_s")]
    value: Annotated[float, quantity("Predicted value in the metric's unit")]
    lo50: Annotated[float, quantity("Lower end of the 50% interval")]
    hi50: Annotated[float, quantity("Upper end of the 50% interval")]
    lo90: Annotated[float, quantity("Lower end of the 90% interval")]
    hi90: Annotated[float, quantity("Upper end of the 90% interval")]
    predictor: Annotated[str, quantity("Who answered", example="regression")]
    bottleneck: Annotated[str, quantity("What limits the rate", example="cpu")] | None = None
    utilisation: (
        Annotated[str, quantity("Busy share of each resource: a JSON object", example='{"cpu": 0.93}')] | None
    ) = None
    in_domain: Annotated[bool, quantity("Every column lies inside what the model was trained on")]
    domain_reason: Annotated[str, quantity("Which column lies outside")] | None = None
    model_version: Annotated[str, quantity("Registered model version")]
    table_version: Annotated[int, quantity("Version of the training table", ge=0)]


class Excuse(Row):
    """Why there is no prediction."""

    predictor: Annotated[str, quantity("Who was asked", example="regression")]
    excuse: Annotated[str, quantity("Why there is no answer")]


class Predictor(Protocol):
    """Whatever answers questions; a comparison of predictors is one loop."""

    def predict(self, configurations: Sequence[Configuration]) -> list[Prediction | Excuse]: ...
