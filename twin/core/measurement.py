"""A printed figure as it stands in its document, and what it means."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from twin.core.configuration import Configuration, ConfigurationId, PlatformId, WorkloadId
from twin.core.fields import Row, quantity

Qualifier = Literal["exact", "approx", "range", "at_least", "at_most", "not_applicable", "text"]
FactKind = Literal["measurement", "configuration", "derived", "claim"]


FigureId = Annotated[str, quantity("source:line:ordinal", example="wbimb-v5-solaris:926:0")]
SourceId = Annotated[str, quantity("The document", example="wbimb-v5-solaris")]
Line = Annotated[int, quantity("Line in the document, from 1", ge=1)]
Printed = Annotated[str, quantity("The characters as printed", example="2727.00")]
ExamGroup = Annotated[str, quantity("Rows of a source that are held out together", example="10.1")]


class Origin(Row):
    """Where a figure stands, so that anyone can look it up."""

    source_id: SourceId
    line: Line
    table_label: Annotated[str, quantity("Table or section", example="10.1")]
    column_header: Annotated[str, quantity("Header of the column as printed", example="Msgs/sec")]
    column_index: Annotated[int, quantity("Column in the printed table, from 0", ge=0)]
    printed: Printed
    source_kind: Annotated[
        Literal["table", "prose", "log"], quantity("Stands in a table, in a sentence, or in a harness's log")
    ]
    box: Annotated[str, quantity("Which of several equal machines, or of tables side by side")] | None = None


class PrintedFigure(Row):
    """Bronze: one printed value with the printed keys of its row; nothing renamed, nothing repaired."""

    figure_id: FigureId
    origin: Origin
    row_keys: Annotated[str, quantity("Key cells of the row as printed: a JSON object by header")]
    declared_as: Annotated[str, quantity("Where the report's file declares what the figure means")] | None = (
        None
    )


class Measurement(Row):
    """Silver: a figure with its meaning."""

    figure_id: FigureId
    metric: Annotated[str, quantity("What was measured", example="throughput_msgs_per_s")]
    value: Annotated[float, quantity("The figure in its unit")] | None = None
    unit: Annotated[str, quantity("Unit of the value", example="msgs/s")]
    qualifier: Annotated[Qualifier, quantity("How the figure is meant")] = "exact"
    value_low: Annotated[float, quantity("Lower end of a printed range")] | None = None
    value_high: Annotated[float, quantity("Upper end of a printed range")] | None = None
    restates: Annotated[str, quantity("The figure that this one repeats")] | None = None
    printed_low: Annotated[float, quantity("Least value that would be printed like this")] | None = None
    printed_high: Annotated[float, quantity("Greatest value that would be printed like this")] | None = None
    derivation_rule: Annotated[str, quantity("How it follows from other figures", example="sum")] | None = (
        None
    )
    derivation: Annotated[str, quantity("The formula over figure ids")] | None = None
    derived_low: Annotated[float, quantity("Least value that follows from the figures")] | None = None
    derived_high: Annotated[float, quantity("Greatest value that follows from the figures")] | None = None
    fact_kind: Annotated[FactKind, quantity("What kind of fact it is")] = "measurement"
    published_at: Annotated[date, quantity("When the source was published")]
    exam_group: ExamGroup | None = None
    configuration_id: ConfigurationId | None = None
    platform_id: PlatformId | None = None
    workload_id: WorkloadId | None = None
    origin: Origin
    row_keys: Annotated[str, quantity("Key cells of the row as printed: a JSON object by header")]
    configuration: Configuration | None = None


class CataloguedDocument(Row):
    """A document whose figures are in bronze."""

    source_id: SourceId
    document_name: Annotated[str, quantity("File it was read from", example="report.txt")]
    document_sha256: Annotated[str, quantity("Hash of the file")]
    declared: Annotated[bool, quantity("A declaration says what its tables mean")]
    figures: Annotated[int, quantity("Figures read from it", ge=0)]
    landed: Annotated[
        bool, quantity("Came through the inbox or a command: what ships with the platform gives way to it")
    ] = False
    title: Annotated[str, quantity("Title")] | None = None
    edition: Annotated[str, quantity("Edition")] | None = None
    publisher: Annotated[str, quantity("Publisher")] | None = None
    document_published_at: Annotated[date, quantity("Date of the edition")] | None = None
    machines: Annotated[str, quantity("Machines measured")] | None = None
    products: Annotated[str, quantity("Products measured")] | None = None
    charts_missing: Annotated[str, quantity("Charts whose points are not in the text")] | None = None


class Finding(Row):
    """What a rule says about a figure."""

    rule: Annotated[str, quantity("Name of the rule", example="utilisation_law")]
    severity: Annotated[
        Literal["error", "warning"], quantity("An error quarantines the figure; a warning flags it")
    ]
    figure_id: FigureId
    source_id: SourceId
    line: Line
    printed: Printed
    expected: Annotated[str, quantity("What the rule expected")]
    message: Annotated[str, quantity("Why, in a sentence")]
