"""Every table of the lake, derived from the row types."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from twin.core.configuration import Configuration, ConfigurationId, Platform, PlatformId, Software, WorkloadId
from twin.core.fields import Field, Row, as_optional, fields_of, quantity
from twin.core.fitted import FittedDemand, FittedSystem, Residual
from twin.core.measurement import CataloguedDocument, ExamGroup, Finding, Measurement, PrintedFigure, SourceId
from twin.core.metrics import METRICS
from twin.core.prediction import Excuse, Prediction
from twin.core.runs import Run, Sample

# a table of layer "file" is exchanged with users and not kept in the lake
Layer = Literal["bronze", "silver", "gold", "file"]


@dataclass(frozen=True)
class Table:
    """A named table: its columns, and the ones that identify a row."""

    name: str
    layer: Layer
    description: str
    fields: tuple[Field, ...]
    key: tuple[str, ...]
    # columns whose values are folders: what is asked for or thrown away by them touches no other file
    parts: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)


PublishedAt = Annotated[date, quantity("When a source first told of it")]


class HardwareDerived(Row):
    """What follows from a platform's own columns."""

    clock_capacity_mhz: Annotated[float, quantity("Processors x clock", unit="MHz", gt=0)] | None = None
    rating_per_cpu: Annotated[float, quantity("SPECint_rate95 per processor", gt=0)] | None = None
    lspr_itr_per_cpu: Annotated[float, quantity("LSPR ratio per processor", gt=0)] | None = None
    log_write_ms: (
        Annotated[float, quantity("A forced write on this kind of disk, as stated", unit="ms", gt=0)] | None
    ) = None
    memory_mb_per_cpu: Annotated[float, quantity("Memory per processor", unit="MB", gt=0)] | None = None


class HardwareFeatures(Row):
    """What is known of a platform before anything is measured on it."""

    platform_id: PlatformId
    published_at: PublishedAt
    platform: Platform
    software: Software
    derived: HardwareDerived


class WorkloadKey(Row):
    """What identifies a workload."""

    workload_id: WorkloadId
    published_at: PublishedAt


class FlowDerived(Row):
    """What follows from a workload's own columns."""

    copies: Annotated[int, quantity("Threads that run the flow: instances x execution groups", ge=1)]
    program_runs: Annotated[int, quantity("Program executions per message over all compute nodes", ge=0)]
    deliveries: Annotated[int, quantity("Messages written per message read", ge=0)]
    population: Annotated[int, quantity("Messages that can be under way at once", ge=1)]
    commits_per_message: Annotated[float, quantity("Units of work that force the log, per message", ge=0)]
    bytes_moved: Annotated[int, quantity("Read and written per message", unit="bytes", ge=0)] | None = None


WORKLOAD_FIELDS = tuple(
    field
    for field in fields_of(Configuration)
    if field.name not in {*Platform.model_fields, *Software.model_fields, "offered_rate_msgs_per_s"}
    # a cost per message is an answer, not a feature
    and not field.name.startswith("demand_")
)
FLOW_FIELDS = (*WORKLOAD_FIELDS, *fields_of(FlowDerived))


HARDWARE_FIELDS = tuple(field for part in (Platform, Software, HardwareDerived) for field in fields_of(part))


class TrainingKeys(Row):
    """What identifies and groups a training row."""

    configuration_id: ConfigurationId
    source_id: SourceId
    exam_group: ExamGroup
    exam_column: (
        Annotated[str, quantity("Rows of a source that are held out together in a second view")] | None
    ) = None
    figures: Annotated[int, quantity("Printed figures that its targets are made of", ge=1)]
    published_at: PublishedAt
    platform_id: PlatformId
    workload_id: WorkloadId


RequestId = Annotated[str, quantity("The request's own id, or its row number")]


class RequestKey(Row):
    """Which request a row answers."""

    request_id: RequestId


class Reject(Row):
    """Why a request row was not understood."""

    request_id: RequestId
    row: Annotated[int, quantity("Row in the request file, from 1", ge=1)]
    field: Annotated[str, quantity("The column at fault")]
    reason: Annotated[str, quantity("What is wrong with it")]


DOCUMENTS = Table(
    "documents",
    "bronze",
    "Documents that figures were read from",
    fields_of(CataloguedDocument),
    ("source_id",),
)
SAMPLES = Table(
    "samples",
    "bronze",
    "Intervals of harness runs as printed",
    fields_of(Sample),
    ("source_id", "document_id", "run", "line"),
    parts=("tool", "month"),
)
FIGURES = Table("figures", "bronze", "Figures as printed", fields_of(PrintedFigure), ("figure_id",))
MEASUREMENTS = Table(
    "measurements", "silver", "Figures with their meaning", fields_of(Measurement), ("figure_id",)
)
QUARANTINE = Table(
    "quarantine",
    "silver",
    "Figures that a rule found to be certainly wrong",
    MEASUREMENTS.fields,
    ("figure_id",),
)
RUNS = Table("runs", "silver", "Harness runs: what each amounts to", fields_of(Run), ("figure_id",))
FINDINGS = Table("findings", "silver", "What the rules said", fields_of(Finding), ("rule", "figure_id"))
DEMANDS = Table(
    "demands",
    "gold",
    "Fitted parameters of the analytic model",
    fields_of(FittedDemand),
    ("system", "parameter"),
)
CALIBRATIONS = Table(
    "calibrations", "gold", "The analytic model, a system a row", fields_of(FittedSystem), ("system",)
)
RESIDUALS = Table(
    "residuals",
    "gold",
    "Measured figures beside what the analytic model says",
    fields_of(Residual),
    ("figure_id",),
)
HARDWARE_FEATURES = Table(
    "hardware_features", "gold", "One row per platform", fields_of(HardwareFeatures), ("platform_id",)
)
FLOW_FEATURES = Table(
    "flow_features",
    "gold",
    "One row per workload",
    (*fields_of(WorkloadKey), *FLOW_FIELDS),
    ("workload_id",),
)
TARGETS = ("throughput_msgs_per_s", "cpu_ms_per_msg")
TRAINING_SET = Table(
    "training_set",
    "gold",
    "One row per measured configuration: features, targets, groups",
    (
        *fields_of(TrainingKeys),
        *HARDWARE_FIELDS,
        *FLOW_FIELDS,
        *as_optional(METRICS[target] for target in TARGETS),
    ),
    ("configuration_id",),
)
PREDICTIONS = Table(
    "predictions",
    "file",
    "Answers to batch requests, in their order",
    (
        *fields_of(RequestKey),
        *as_optional(fields_of(Prediction)),
        *as_optional(field for field in fields_of(Excuse) if field.name == "excuse"),
    ),
    ("request_id", "predictor", "target"),
)
REJECTS = Table(
    "rejects", "file", "Request rows that were not understood", fields_of(Reject), ("row", "field")
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        DOCUMENTS,
        FIGURES,
        SAMPLES,
        RUNS,
        MEASUREMENTS,
        QUARANTINE,
        FINDINGS,
        DEMANDS,
        CALIBRATIONS,
        RESIDUALS,
        HARDWARE_FEATURES,
        FLOW_FEATURES,
        TRAINING_SET,
        PREDICTIONS,
        REJECTS,
    )
}
