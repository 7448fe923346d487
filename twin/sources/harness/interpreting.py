"""Bronze figures of harness files to measurements; the files themselves are not looked at again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import groupby

from twin.core.configuration import Configuration
from twin.core.measurement import Measurement, PrintedFigure
from twin.core.metrics import METRICS
from twin.sources.harness.format import EXAM_GROUP, PUBLISHED_AT
from twin.sources.harness.registry import BY_NAME
from twin.sources.measuring import measurement_of
from twin.sources.printed import understand


def interpret_harness(figures: Iterable[PrintedFigure]) -> list[Measurement]:
    """Figures of no declaration have no meaning and are left out."""
    declared = (figure for figure in figures if figure.declared_as)
    return [
        measured
        for row_keys, row in groupby(declared, key=lambda figure: figure.row_keys)
        for measured in _of_one_row(row_keys, row)
    ]


def _of_one_row(row_keys: str, figures: Iterable[PrintedFigure]) -> Iterator[Measurement]:
    keys: dict[str, str] = json.loads(row_keys)
    configuration: Configuration | None = None
    for figure in figures:
        name, _, header = (figure.declared_as or "").partition("/")
        form = BY_NAME[name]
        metric = form.metric(header, keys)
        configuration = configuration or Configuration.from_flat(form.configuration(keys))
        yield measurement_of(
            figure,
            metric,
            understand(figure.origin.printed, counted=METRICS[metric].kind == "integer"),
            configuration,
            date.fromisoformat(keys[PUBLISHED_AT]),
            keys.get(EXAM_GROUP) or figure.origin.table_label,
        )
