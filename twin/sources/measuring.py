"""A printed figure and its meaning, whatever kind of source it stands in, put together to a measurement."""

from __future__ import annotations

from datetime import date
from typing import Any

from twin.core.configuration import Configuration, content_id
from twin.core.measurement import Measurement, PrintedFigure
from twin.core.metrics import METRICS
from twin.sources.printed import Printed


def measurement_of(
    figure: PrintedFigure,
    metric: str,
    printed: Printed,
    configuration: Configuration | None,
    published_at: date,
    exam_group: str | None,
    **relations: Any,
) -> Measurement:
    """`relations`: how the figure stands to others of its source, under the columns of a measurement."""
    return Measurement(
        figure_id=figure.figure_id,
        metric=metric,
        unit=METRICS[metric].unit or "",
        value=printed.value,
        qualifier=printed.qualifier,
        value_low=printed.value_low,
        value_high=printed.value_high,
        printed_low=printed.low,
        printed_high=printed.high,
        published_at=published_at,
        exam_group=exam_group,
        configuration_id=configuration.configuration_id if configuration else None,
        platform_id=content_id(configuration.platform, configuration.software) if configuration else None,
        workload_id=content_id(configuration.workload) if configuration else None,
        origin=figure.origin,
        row_keys=figure.row_keys,
        configuration=configuration,
        **relations,
    )
