"""Printed figures of one report to measurements: metric, value, configuration, and what follows from what."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from twin.core.configuration import Configuration
from twin.core.measurement import Measurement, PrintedFigure
from twin.core.metrics import METRICS
from twin.core.outside import BadInput
from twin.sources.declarations import Column, Fact, Reference, Report, TableDeclaration
from twin.sources.formula import BadFormula, Interval, evaluate
from twin.sources.measuring import measurement_of
from twin.sources.printed import Printed, understand

# a formula over more figures than these names the first and the last
_MOST_IDS = 8


class BadReference(Exception):
    """A declaration refers to figures that are not there."""


def interpret(figures: Sequence[PrintedFigure], report: Report) -> list[Measurement]:
    """All figures of one report; those of no declaration have no meaning and are left out."""
    return _Interpreter(report, [figure for figure in figures if figure.declared_as]).measurements()


@dataclass(frozen=True)
class _Meant:
    """A figure with its declaration, before it is compared with others."""

    figure: PrintedFigure
    fact: Fact
    printed: Printed
    keys: dict[str, str]
    configuration: Configuration | None
    exam_group: str | None

    @property
    def configuration_id(self) -> str | None:
        return self.configuration.configuration_id if self.configuration else None


class _Interpreter:
    def __init__(self, report: Report, figures: Sequence[PrintedFigure]) -> None:
        self._report = report
        self._meant = [self._understood(figure) for figure in figures]
        self._by_label: dict[str, list[_Meant]] = {}
        for one in self._meant:
            self._by_label.setdefault(one.figure.origin.table_label, []).append(one)
        self._derived: dict[str, tuple[str, Interval] | None] = {}

    def measurements(self) -> list[Measurement]:
        return [self._measurement(one) for one in self._meant]

    def _understood(self, figure: PrintedFigure) -> _Meant:
        """Raises `BadInput` where a key cell is no value of the column that it is declared to be."""
        try:
            return self._meaning(figure)
        except ValidationError as error:
            first = error.errors()[0]
            place = f"line {figure.origin.line}: {first['loc'][-1]}"
            raise BadInput(f"{place}: {first['input']!r} does not fit: {first['msg']}") from error

    def _meaning(self, figure: PrintedFigure) -> _Meant:
        path = (figure.declared_as or "").split("/")
        keys: dict[str, str] = json.loads(figure.row_keys)
        if path[0] == "statements":
            statement = self._report.statements[int(path[1])]
            fact = statement.facts[int(path[3])]
            configuration = self._configuration(statement.configuration, fact.configuration)
            group = fact.exam_group or statement.exam_group
        else:
            table = self._report.tables[int(path[1])]
            fact, column, row_configuration = _table_fact(table, path)
            configuration = self._configuration(
                table.configuration,
                self._keys_configuration(table, keys, column.box),
                column.configuration,
                row_configuration,
                fact.configuration,
            )
            group = fact.exam_group or table.exam_group or table.label if table.exam else None
            if group and configuration:
                group = group.format(**configuration.flat())
        counted = fact.fact_kind == "configuration" or METRICS[fact.metric].kind == "integer"
        printed = understand(figure.origin.printed, fact.qualifier, fact.scale, fact.value, counted)
        return _Meant(figure, fact, printed, keys, configuration, group)

    def _configuration(self, *parts: dict[str, Any] | None) -> Configuration | None:
        """The report's own configuration with what the parts add; none if any of them says there is none."""
        values = dict(self._report.configuration)
        for part in parts:
            if part is None:
                return None
            values |= part
        return Configuration.from_flat({name: value for name, value in values.items() if value is not None})

    def _keys_configuration(
        self, table: TableDeclaration, keys: dict[str, str], box: str | None
    ) -> dict[str, Any]:
        columns = {
            column.header: column.key for column in table.columns if column.key and column.box in (None, box)
        }
        return {name: self._key(keys[header]) for header, name in columns.items() if keys.get(header)}

    def _key(self, cell: str) -> Any:
        known = self._report.words.get(cell, self._report.words.get(cell.lower()))
        return re.sub(r"(?<=\d),(?=\d{3})", "", cell) if known is None else known

    def _measurement(self, one: _Meant) -> Measurement:
        restated = self._restated(one)
        rule, derivation, low, high = self._derivation_of(one, restated)
        return measurement_of(
            one.figure,
            one.fact.metric,
            one.printed,
            one.configuration,
            self._report.published_at,
            one.exam_group,
            fact_kind=one.fact.fact_kind,
            restates=restated.figure.figure_id if restated else None,
            derivation_rule=rule,
            derivation=derivation,
            derived_low=low,
            derived_high=high,
        )

    def _restated(self, one: _Meant) -> _Meant | None:
        if one.fact.restates is None:
            return None
        reference = one.fact.restates
        found = self._referred(one, reference)
        if not reference.keys and reference.column is None and reference.box is None:
            found = [other for other in found if other.configuration_id == one.configuration_id]
        if len({other.figure.origin.printed for other in found}) != 1:
            raise BadReference(f"{one.figure.figure_id} restates {len(found)} figures: {one.fact.restates}")
        return found[0]

    def _derivation_of(
        self, one: _Meant, restated: _Meant | None
    ) -> tuple[str | None, str | None, float | None, float | None]:
        if restated is not None:
            low, high = self._trusted(restated) or (None, None)
            return "restatement", restated.figure.figure_id, low, high
        derived = self._derivation(one)
        if derived is None or one.fact.derivation is None:
            return None, None, None, None
        text, (low, high) = derived
        return one.fact.derivation.rule, text, low, high

    def _derivation(self, one: _Meant) -> tuple[str, Interval] | None:
        """The formula over figure ids and its interval; worked out once per figure."""
        declared = one.fact.derivation
        if declared is None:
            return None
        key = one.figure.figure_id
        if key not in self._derived:
            self._derived[key] = None  # a figure that follows from itself has no derivation
            row = {
                other.fact.metric: [other]
                for other in self._same_row(one)
                if re.search(rf"\b{other.fact.metric}\b", declared.formula)
            }
            named = row | {name: self._referred(one, reference) for name, reference in declared.of.items()}
            values = {name: [self._trusted(other) for other in others] for name, others in named.items()}
            # from what is no number (a cell that says "lots") nothing follows
            known = {name: [x for x in of if x] for name, of in values.items()}
            if known == values:
                self._derived[key] = self._worked_out(one, declared.formula, named, known)
        return self._derived[key]

    def _worked_out(
        self, one: _Meant, formula: str, named: dict[str, list[_Meant]], values: dict[str, list[Interval]]
    ) -> tuple[str, Interval]:
        columns = one.configuration.flat() if one.configuration else {}
        numbers = {
            name: [(float(value), float(value))]
            for name, value in columns.items()
            if isinstance(value, int | float)
        }
        try:
            return _with_ids(formula, named), evaluate(formula, numbers | values)
        except BadFormula as error:
            raise BadReference(f"{one.figure.figure_id}: {error}") from error

    def _same_row(self, one: _Meant) -> list[_Meant]:
        origin = one.figure.origin
        return [
            other
            for other in self._by_label[origin.table_label]
            if other is not one
            and (other.figure.origin.line, other.figure.origin.box) == (origin.line, origin.box)
        ]

    def _trusted(self, one: _Meant) -> Interval | None:
        """What a figure stands for: its printed digits, unless they contradict what it follows from."""
        low = one.printed.low if one.printed.low is not None else one.printed.value
        high = one.printed.high if one.printed.high is not None else one.printed.value
        if low is None or high is None:
            return None
        derived = self._derivation(one)
        if derived and not (low <= derived[1][1] and derived[1][0] <= high):
            return derived[1]
        return low, high

    def _referred(self, one: _Meant, reference: Reference) -> list[_Meant]:
        metric = reference.metric or one.fact.metric
        here = one.figure.origin
        found = [
            other
            for label in fnmatch.filter(self._by_label, reference.table)
            for other in self._by_label[label]
            if other is not one
            and other.fact.metric == metric
            and (not reference.same_row or other.figure.origin.line == here.line)
            and (not reference.same_column or other.figure.origin.column_index == here.column_index)
            and reference.box in (None, other.figure.origin.box)
            and reference.column in (None, other.figure.origin.column_header)
            and reference.keys.items() <= other.keys.items()
        ]
        if not found:
            raise BadReference(f"{one.figure.figure_id} refers to nothing: {reference}")
        return found


def _table_fact(table: TableDeclaration, path: list[str]) -> tuple[Fact, Column, dict[str, Any]]:
    """Path: tables/N[/rows/N]/columns/N/facts/N; a row's facts go before its column's."""
    numbers = dict(zip(path[::2], map(int, path[1::2]), strict=True))
    column = table.columns[numbers["columns"]]
    if "rows" not in numbers:
        return column.facts[numbers["facts"]], column, {}
    row = table.rows[numbers["rows"]]
    return (row.facts or column.facts)[numbers["facts"]], column, row.configuration


def _with_ids(formula: str, named: dict[str, list[_Meant]]) -> str:
    """The formula with each name replaced by the figures it stands for."""
    ids = {name: [other.figure.figure_id for other in others] for name, others in named.items()}

    def replaced(match: re.Match[str]) -> str:
        found = ids.get(match.group())
        if found is None:
            return match.group()
        if len(found) > _MOST_IDS:
            return f"[{found[0]} ... {found[-1]}]"
        return ", ".join(f"[{figure_id}]" for figure_id in found)

    return re.sub(r"[A-Za-z_]\w*", replaced, formula)
