"""What the physics says of figures that it was not given: every configuration is left out once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

from twin.calibration.calibrating import fit_all
from twin.calibration.calibration import calibration_of
from twin.calibration.observations import Observation
from twin.calibration.predictor import AnalyticPredictor
from twin.core.columns import Columns
from twin.core.configuration import Configuration, ConfigurationId
from twin.core.fields import Row, quantity

FOLDS = 5

Told = Callable[[int, int], None]


class HeldOut(Row):
    """A metric of a configuration, foretold by a fit on the other configurations; or why it is not."""

    configuration_id: ConfigurationId
    metric: Annotated[str, quantity("What is foretold")]
    value: Annotated[float, quantity("What the fit says")] | None = None
    lo90: Annotated[float, quantity("Lower end of the 90% interval")] | None = None
    hi90: Annotated[float, quantity("Upper end of the 90% interval")] | None = None
    excuse: Annotated[str, quantity("Why there is no answer")] | None = None


def fold_of(configuration_id: str) -> int:
    """With whom a configuration is left out; every figure of it goes the same way."""
    return int(hashlib.sha256(configuration_id.encode()).hexdigest(), 16) % FOLDS


def held_out(
    rows: Sequence[Observation],
    asked: Iterable[tuple[Configuration, str]],
    told: Told = lambda _done, _of: None,
) -> list[HeldOut]:
    """Questions are answered by physics fitted on those rows alone whose configuration is in another fold."""
    questions: dict[int, dict[str, dict[str, Configuration]]] = {number: {} for number in range(FOLDS)}
    for configuration, metric in asked:
        one = configuration.configuration_id
        questions[fold_of(one)].setdefault(metric, {})[one] = configuration
    found = []
    for done, (number, by_metric) in enumerate(questions.items(), start=1):
        if by_metric:
            others = [row for row in rows if fold_of(row.configuration.configuration_id) != number]
            calibrations = [calibration_of(fit) for fit in fit_all(others)]
            predictor = AnalyticPredictor({one.system: one for one in calibrations})
            for metric, configurations in sorted(by_metric.items()):
                found += _answered(predictor, metric, configurations)
        told(done, FOLDS)
    return found


def _answered(
    predictor: AnalyticPredictor, metric: str, configurations: dict[str, Configuration]
) -> list[HeldOut]:
    said = predictor.answer(Columns.of(list(configurations.values())), metric)
    return [
        HeldOut(configuration_id=one, metric=metric, excuse=excuse)
        if excuse is not None
        else HeldOut(configuration_id=one, metric=metric, value=value, lo90=low, hi90=high)
        for one, value, low, high, excuse in zip(
            configurations,
            said.value.tolist(),
            said.lo90.tolist(),
            said.hi90.tolist(),
            said.excuse,
            strict=True,
        )
    ]
