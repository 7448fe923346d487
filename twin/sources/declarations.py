"""What a report's tables and sentences mean: declared in one data file per report.

A *fact* is one printed figure: how its characters are found, what it measures, what it repeats or follows
from. Tables place facts in columns or rows, statements place them in sentences. Everything about a report
that is not general lives in its file; the reader knows no report.
"""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, model_validator

from twin.core.measurement import FactKind, Qualifier
from twin.core.metrics import METRICS

_REPORTS = Path(__file__).parent / "reports"

NUMBER = r"(N/A|[-+]?\d[\d,]*(?:\.\d+)?)"


class Declaration(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Reference(Declaration):
    """Other figures of the same report: those that fit everything given here."""

    table: str  # the label of a table or section; * stands for anything
    same_row: bool = False
    same_column: bool = False
    metric: str | None = None  # the referring fact's own metric when left out
    box: str | None = None
    column: str | None = None  # the printed column header
    keys: dict[str, str] = {}  # printed key cells by printed header


class Derivation(Declaration):
    """What a figure follows from, so that a law can check it.

    Names in the formula are metrics of the same row (and box), numeric configuration columns of the figure,
    or references under `of`. Several referred figures go through sum(), max() or min().
    """

    rule: Literal["sum", "product", "ratio", "difference", "count", "claim"]
    formula: str
    of: dict[str, Reference] = {}


class Fact(Declaration):
    metric: str
    find: str = NUMBER  # within the cell; the first group is the figure
    scale: float = 1  # from the printed unit to the metric's
    qualifier: Qualifier | None = None  # where the characters alone do not tell
    fact_kind: FactKind = "measurement"
    configuration: dict[str, Any] | None = {}  # added to the row's; null: the figure has none
    exam_group: str | None = None
    restates: Reference | None = None  # without keys, column and box: the one of the same configuration
    derivation: Derivation | None = None
    value: float | None = None  # where the characters are words

    @model_validator(mode="after")
    def _metric_is_known(self) -> Fact:
        if self.metric not in METRICS:
            raise ValueError(f"metric {self.metric!r} is not declared in twin/core/metrics.py")
        return self


class Column(Declaration):
    """A printed column: a key, one or more facts per cell, or neither."""

    header: str = ""
    key: str | None = None  # the configuration column its cells fill; "" for a key that is only printed
    facts: list[Fact] = []
    box: str | None = None  # side by side tables: the one this column belongs to
    configuration: dict[str, Any] = {}


class RowDeclaration(Declaration):
    """A row whose label says what its cells are; rows are declared in printed order."""

    label: str  # a pattern for the row's first cells, joined by a space
    facts: list[Fact] = []
    configuration: dict[str, Any] = {}
    skip: bool = False  # such rows hold no figures, wherever they stand


class TableDeclaration(Declaration):
    label: str
    after: str | None = None  # a pattern for a line above the table
    header: list[str] | None = None  # the printed header line where it differs from the columns' headers
    row: str | None = None  # where no pipe or tab parts the cells: a pattern for a row, a group for each cell
    skip: str | None = None  # lines inside the table that are not rows
    box: str | None = None
    # printed labels between the anchor and the rows: a pattern's first group goes to the keys, with its line
    labels: dict[str, str] = {}
    columns: list[Column]
    rows: list[RowDeclaration] = []
    configuration: dict[str, Any] | None = {}
    exam_group: str | None = None  # the label when left out
    exam: bool = True  # figures of environment tables belong to no exam group


class Statement(Declaration):
    """A sentence with figures; one group of the pattern for each fact."""

    section: str
    find: str
    after: str | None = None  # search from this line on; otherwise from the statement before
    facts: list[Fact]
    configuration: dict[str, Any] | None = {}
    exam_group: str | None = None


class Catalogue(Declaration):
    """What a library card would say."""

    title: str
    edition: str
    published_at: date
    publisher: str
    machines: list[str]
    products: list[str]
    document_sha256: str
    charts_missing: list[str]


class Report(Declaration):
    source_id: str
    catalogue: Catalogue
    recognised_by: list[str]
    words: dict[str, Any] = {}  # printed key cells that are words
    configuration: dict[str, Any]
    tables: list[TableDeclaration]
    statements: list[Statement] = []

    @property
    def published_at(self) -> date:
        return self.catalogue.published_at


@cache
def reports() -> dict[str, Report]:
    """Every report the platform knows, by source id."""
    return {report.source_id: report for report in map(load_report, sorted(_REPORTS.glob("*.yaml")))}


def load_report(path: Path) -> Report:
    content = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 the loader below is a safe one
    content.pop("shared", None)  # anchors that the file's own entries point to
    return Report.model_validate(content)


class _Loader(yaml.SafeLoader):
    """Safe, and with only true and false as flags: a key cell that says 'no' stays what was printed."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:true|false)$"), list("tf"))
