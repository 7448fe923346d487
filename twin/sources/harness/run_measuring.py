"""A run to measurements: its rate, and the figures of its summary as printed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from twin.core.configuration import Configuration
from twin.core.fields import fields_of
from twin.core.measurement import Measurement, Origin, PrintedFigure
from twin.sources.harness.recording import SummaryFigure
from twin.sources.measuring import measurement_of
from twin.sources.printed import Printed

_CONFIGURATION = tuple(field.name for field in fields_of(Configuration))
# no rate stands in these
_NOT_MEASURED = ("too_short", "idle")


def measurements_of(run: Mapping[str, Any]) -> Iterator[Measurement]:
    """By the columns of the table `runs`; a run whose configuration is not known measures nothing."""
    if run["configuration_id"] is None:
        return
    configuration = Configuration.from_flat(
        {name: run[name] for name in _CONFIGURATION if run.get(name) is not None}
    )
    if run["rate_msgs_per_s"] is not None and run["verdict"] not in _NOT_MEASURED:
        yield _measured(run, configuration, "throughput_msgs_per_s", _rate(run), run["rate_msgs_per_s"], 0, {
            "derivation_rule": run["estimator"], "derivation": _derivation(run),
        })  # fmt: skip
    if run["cpu_busy_pct"] is not None:
        figure = SummaryFigure(run["line"], "cpu_busy_pct", repr(run["cpu_busy_pct"]))
        yield _measured(run, configuration, "cpu_busy_pct", figure, run["cpu_busy_pct"], 1, {})
    for at, values in enumerate(json.loads(run["summary"]), start=2):
        figure = SummaryFigure(*values)
        if figure.metric is not None and figure.value is not None:
            yield _measured(run, configuration, figure.metric, figure, figure.value, at, {})


def _measured(
    run: Mapping[str, Any],
    configuration: Configuration,
    metric: str,
    figure: SummaryFigure,
    value: float,
    ordinal: int,
    relations: Mapping[str, Any],
) -> Measurement:
    printed = PrintedFigure(
        figure_id=f"{run['figure_id'].removesuffix('-0')}-{ordinal}",
        origin=Origin(
            source_id=run["source_id"],
            line=figure.line,
            table_label=run["document_name"],
            column_header=figure.header,
            column_index=ordinal,
            printed=figure.printed,
            source_kind="log",
        ),
        row_keys=json.dumps({"run": run["run"], "loop": run["loop"], "tool": run["tool"]}),
    )
    group = f"{run['family']}, {run['message_bytes']} bytes{', persistent' if run['persistent'] else ''}"
    exact = Printed("exact", value, low=value, high=value)
    return measurement_of(printed, metric, exact, configuration, run["measured_at"], group, **relations)


def _rate(run: Mapping[str, Any]) -> SummaryFigure:
    return SummaryFigure(run["line"], str(run["estimator"]), run["printed"])


def _derivation(run: Mapping[str, Any]) -> str | None:
    if run["steady_first_line"] is None:
        return None
    return f"mean of lines {run['steady_first_line']:.0f} to {run['steady_last_line']:.0f}"
