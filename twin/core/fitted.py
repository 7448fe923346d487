"""What calibration leaves in the lake: demands with their doubt and origin, and the rows around the fit."""

from __future__ import annotations

from typing import Annotated

from twin.core.fields import Row, quantity
from twin.core.measurement import FigureId, Line, Printed, SourceId

SystemName = Annotated[str, quantity("The system", example="broker")]
FittedOn = Annotated[str, quantity("Identifies the figures and the physics that it was fitted with")]


class FittedDemand(Row):
    """One parameter of a system: what the rows say it is."""

    system: SystemName
    parameter: Annotated[str, quantity("The parameter", example="esql_ms[complex]")]
    demand_unit: Annotated[str, quantity("Its unit", example="ms")]
    fitted_value: Annotated[float, quantity("Fitted value", gt=0)]
    log_sd: Annotated[float, quantity("Standard error of its logarithm", ge=0)]
    prior: Annotated[float, quantity("Value expected before any row was seen", gt=0)]
    prior_log_sd: Annotated[float, quantity("Doubt of that: standard deviation of the logarithm", gt=0)]
    prior_source: Annotated[str, quantity("Where the expectation comes from")]
    informed: Annotated[bool, quantity("Some row would show it if it were much larger")]
    fitted_on: FittedOn


class FittedSystem(Row):
    """A whole calibration as one document, from which a predictor can be made again."""

    system: SystemName
    fitted_on: FittedOn
    rows_used: Annotated[int, quantity("Figures that it was fitted on", ge=0)]
    document: Annotated[str, quantity("Demands, covariance, noise and domain: a JSON object")]


class Residual(Row):
    """A measured figure beside what the fitted physics says."""

    figure_id: FigureId
    source_id: SourceId
    line: Line
    printed: Printed
    system: SystemName
    metric: Annotated[str, quantity("What was measured")]
    value: Annotated[float, quantity("The figure")]
    fitted_value: Annotated[float, quantity("What the physics says")]
    deviations: Annotated[float, quantity("How many standard deviations of a row around the fit it is off")]
