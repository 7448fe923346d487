"""All systems fitted on the measurements at hand, and what is foretold of rows that no fit has seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import numpy as np

from twin.calibration.fitting import Fit, fit
from twin.calibration.observations import Observation, Observations
from twin.calibration.predictor import AnalyticPredictor
from twin.core.columns import Columns
from twin.core.fields import Row, quantity
from twin.core.metrics import METRICS
from twin.systems.registry import SYSTEMS


class Forecast(Row):
    """A measured figure and what a fit that had not seen it says."""

    system: Annotated[str, quantity("The system")]
    title: Annotated[str, quantity("What is foretold from what")]
    figure_id: Annotated[str, quantity("The figure")]
    metric: Annotated[str, quantity("What was measured")]
    value: Annotated[float, quantity("The figure's value")]
    predicted: Annotated[float, quantity("What the fit says")]


def fitted_rows(rows: Iterable[Observation]) -> list[Observations]:
    """What each system that has rows is fitted on; rows kept out of every fit have no exam group."""
    fitted = [row for row in rows if row.exam_group is not None]
    by_system = [Observations.of(system, fitted) for system in SYSTEMS if system.parameters]
    return [one for one in by_system if one.rows]


def fit_all(rows: Iterable[Observation], told: Callable[[str], None] = lambda _: None) -> list[Fit]:
    fits = []
    for observations in fitted_rows(rows):
        told(observations.system.name)
        fits.append(fit(observations))
    return fits


def forecasts(fits: Sequence[Fit], rows: Sequence[Observation]) -> list[Forecast]:
    """Rows that are kept out of every fit, and those that a system wants foretold from its other rows."""
    kept_out = [row for row in rows if row.exam_group is None]
    return [
        forecast
        for one in fits
        for forecast in (
            *_foretold(one, Observations.of(one.observations.system, kept_out), lambda _: "never fitted on"),
            *_from_the_others(one),
        )
    ]


def _from_the_others(one: Fit) -> list[Forecast]:
    system = one.observations.system
    if (label := system.foretold) is None:
        return []
    seen = [row for row in one.observations.rows if label(row.configuration) is None]
    unseen = [row for row in one.observations.rows if label(row.configuration) is not None]
    if not seen or not unseen:
        return []
    refitted = fit(Observations(system, seen))
    return _foretold(refitted, Observations(system, unseen), lambda row: str(label(row.configuration)))


def _foretold(by: Fit, observations: Observations, title: Callable[[Observation], str]) -> list[Forecast]:
    if not observations.rows:
        return []
    system = observations.system
    metrics = system.evaluate(observations.batch(by.observations.reference), by.demands).metrics
    said = [
        float(metrics[row.metric][place])
        for row, place in zip(observations.rows, observations.places, strict=True)
    ]
    return [
        Forecast(
            system=system.name,
            title=title(row),
            figure_id=row.figure_id,
            metric=row.metric,
            value=row.value,
            predicted=value,
        )
        for row, value in zip(observations.rows, said, strict=True)
        if np.isfinite(value)
    ]


class Coverage(Row):
    """How many of the measured rates, times and processor figures the model has a value for."""

    figures: Annotated[int, quantity("Measured figures", ge=0)]
    predicted: Annotated[int, quantity("Those with a prediction", ge=0)]
    excuses: dict[str, str]


def coverage(predictor: AnalyticPredictor, rows: Sequence[Observation]) -> Coverage:
    asked = [row for row in rows if _is_performance(row.metric)]
    excuses: dict[str, str] = {}
    for metric in sorted({row.metric for row in asked}):
        of_metric = [row for row in asked if row.metric == metric]
        said = predictor.answer(Columns.of([row.configuration for row in of_metric]), metric).excuse
        excuses |= {
            row.figure_id: excuse for row, excuse in zip(of_metric, said, strict=True) if excuse is not None
        }
    return Coverage(figures=len(asked), predicted=len(asked) - len(excuses), excuses=excuses)


def _is_performance(metric: str) -> bool:
    unit = METRICS[metric].unit
    share_of_cpu = unit == "%" and metric.startswith(("cpu_", "io_wait", "process_cpu"))
    return share_of_cpu or unit in ("msgs/s", "MB/s", "1/s", "ms", "s", "us", "ms/s", "us/s", "s/day")
