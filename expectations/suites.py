"""Great Expectations suites, derived from the declared columns and the laws."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from expectations.laws import Law
from twin.core.fields import Field
from twin.core.tables import MEASUREMENTS, Table

if TYPE_CHECKING:
    from great_expectations import ExpectationSuite
    from great_expectations.expectations.expectation import Expectation


TABLE_RULE = "columns"


def suite(table: Table, laws: tuple[Law, ...], only: Collection[str] | None = None) -> ExpectationSuite:
    """A table's rules and laws; with `only`, those rules alone."""
    from great_expectations import ExpectationSuite

    rules = [rule for rule in _table_rules(table) if only is None or rule.meta["rule"] in only]
    return ExpectationSuite(name=table.name, expectations=[*rules, *(_law_rule(law) for law in laws)])


def own_rules(table: Table) -> set[str]:
    """Those of columns that the measurements do not have: they were checked there."""
    known = set(MEASUREMENTS.columns)
    fields = [field for field in table.fields if field.name not in known]
    named = {rule.meta["rule"] for field in fields for rule in _field_rules(field)}
    return {TABLE_RULE, *(f"{name}_unique" for name in table.key), *named}


def _table_rules(table: Table) -> list[Expectation]:
    import great_expectations.expectations as gxe

    rules: list[Expectation] = [
        gxe.ExpectTableColumnsToMatchSet(
            column_set=list(table.columns),
            exact_match=True,
            **_named(TABLE_RULE, "error", "the declared columns"),
        )
    ]
    if len(table.key) == 1:
        rules.append(
            gxe.ExpectColumnValuesToBeUnique(
                column=table.key[0], **_named(f"{table.key[0]}_unique", "error", "a value of its own")
            )
        )
    for field in table.fields:
        rules.extend(_field_rules(field))
    return rules


def _field_rules(field: Field) -> list[Expectation]:
    import great_expectations.expectations as gxe

    rules: list[Expectation] = []
    if not field.nullable:
        rules.append(
            gxe.ExpectColumnValuesToNotBeNull(
                column=field.name, **_named(f"{field.name}_present", "error", "a value")
            )
        )
    if field.choices:
        rules.append(
            gxe.ExpectColumnValuesToBeInSet(
                column=field.name,
                value_set=list(field.choices),
                **_named(f"{field.name}_known", "error", field.range_text),
            )
        )
    if field.minimum is not None or field.maximum is not None:
        rules.append(
            gxe.ExpectColumnValuesToBeBetween(
                column=field.name,
                min_value=field.minimum,
                max_value=field.maximum,
                strict_min=field.exclusive_minimum,
                **_named(f"{field.name}_in_range", "error", field.range_text),
            )
        )
    return rules


def _law_rule(law: Law) -> Expectation:
    from expectations.law_rule import LawHolds

    return LawHolds(
        unexpected_rows_query=law.query, description=law.description, **_named(law.name, law.severity, "")
    )


def _named(rule: str, severity: str, expected: str) -> dict[str, Any]:
    return {
        "meta": {"rule": rule, "severity": severity, "expected": expected},
        "severity": _GX_SEVERITY[severity],
    }


_GX_SEVERITY = {"error": "critical", "warning": "warning"}
