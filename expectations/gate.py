"""Runs a suite over a Spark frame and turns what it finds into findings.

Great Expectations decides what fails. A failed law's findings are the rows of its own query; a failed
column rule is run once more for the rows that fail it. Its checkpoint fails on warnings too, so what a
finding does to a figure is decided by the severity, not by the checkpoint.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expectations.data_docs import make_offline
from expectations.laws import Law
from expectations.suites import TABLE_RULE, own_rules, suite
from features.schemas import spark_schema
from twin.core.settings import Settings
from twin.core.tables import FINDINGS, Table

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.data_context import FileDataContext
    from pyspark.sql import DataFrame

_KEYS = ("figure_id", "source_id", "line", "printed")
_LAW_COLUMNS = (*_KEYS, "expected", "message")
PASSED = "passed"


class SuiteCannotRun(Exception):
    """An expectation raised instead of answering, or the frame is not the table it is meant to be."""


def findings_of(
    settings: Settings,
    table: Table,
    frame: DataFrame,
    laws: tuple[Law, ...],
    only: Collection[str] | None = None,
) -> DataFrame:
    """Validate `frame` as `table`, build the Data Docs, return the findings; with `only`, of the laws and
    these rules."""
    spark = frame.sparkSession
    by_name = {law.name: law for law in laws}
    frame.persist()
    try:
        failed = [result for result in _run(settings, table, frame, laws, only) if not result.success]
        rules = {result.expectation_config.meta["rule"] for result in failed}
        rows = [row for rule in rules & by_name.keys() for row in _rows_of_law(by_name[rule], frame)]
        rows += _rows_of_column_rules(table, rules - by_name.keys(), frame)
    finally:
        frame.unpersist()
    return spark.createDataFrame(rows, spark_schema(FINDINGS))


def verdict_of(settings: Settings, table: Table, frame: DataFrame, laws: tuple[Law, ...]) -> str:
    """`passed`, or the rules that the table as a whole breaks. Its columns were checked where they came from:
    here only its keys, its own derived columns and the laws are."""
    results = _run(settings, table, frame, laws, own_rules(table))
    broken = [result.expectation_config.meta["rule"] for result in results if not result.success]
    return f"broken: {', '.join(broken)}" if broken else PASSED


def docs_index(settings: Settings) -> Path:
    return settings.home / "quality" / "gx" / "uncommitted" / "data_docs" / "local_site" / "index.html"


def _run(
    settings: Settings,
    table: Table,
    frame: DataFrame,
    laws: tuple[Law, ...],
    only: Collection[str] | None = None,
) -> list[ExpectationValidationResult]:
    import great_expectations as gx
    from great_expectations.checkpoint.actions import UpdateDataDocsAction

    context = _file_context(settings)
    batches = (
        context.data_sources.add_or_update_spark("lake")
        .add_dataframe_asset(table.name)
        .add_batch_definition_whole_dataframe("all")
    )
    stored = context.suites.add_or_update(suite(table, laws, only))
    definition = context.validation_definitions.add_or_update(
        gx.ValidationDefinition(name=table.name, data=batches, suite=stored)
    )
    checkpoint = context.checkpoints.add_or_update(
        gx.Checkpoint(
            name=table.name,
            validation_definitions=[definition],
            actions=[UpdateDataDocsAction(name="docs")],
            result_format={"result_format": "BASIC", "partial_unexpected_count": 0},
        )
    )
    (outcome,) = checkpoint.run(batch_parameters={"dataframe": frame}).run_results.values()
    make_offline(docs_index(settings).parent)
    for result in outcome.results:
        _check_it_ran(result)
    return list(outcome.results)


def _check_it_ran(result: ExpectationValidationResult) -> None:
    """A rule that raised, or that is about the table as a whole, has no rows that could be findings."""
    rule = result.expectation_config.meta["rule"]
    info = result.exception_info or {}
    # the information stands alone, or once for each metric that raised
    raised = [
        part for part in (info, *info.values()) if isinstance(part, dict) and part.get("raised_exception")
    ]
    if raised:
        raise SuiteCannotRun(f"{rule}: {raised[0].get('exception_message')}")
    if rule == TABLE_RULE and not result.success:
        raise SuiteCannotRun(f"the table has other columns than declared: {result.result}")


def _file_context(settings: Settings) -> FileDataContext:
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # nobody is told what is validated here
    import great_expectations as gx

    # hundreds of lines about its own fields would hide what a run has to say
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    root = settings.home / "quality"
    root.mkdir(parents=True, exist_ok=True)
    context = gx.get_context(mode="file", project_root_dir=root)
    context.variables.progress_bars = {"globally": False}
    return context


def _rows_of_law(law: Law, frame: DataFrame) -> list[dict[str, Any]]:
    frame.createOrReplaceTempView("law_batch")
    found = frame.sparkSession.sql(law.query.format(batch="law_batch")).select(*_LAW_COLUMNS)
    return [{"rule": law.name, "severity": law.severity, **row.asDict()} for row in found.collect()]


def _rows_of_column_rules(table: Table, failed: set[str], frame: DataFrame) -> list[dict[str, Any]]:
    """The failed rules once more, this time for the keys of the rows that fail them."""
    if not failed:
        return []
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    batch = (
        context.data_sources.add_spark("once")
        .add_dataframe_asset("once")
        .add_batch_definition_whole_dataframe("once")
        .get_batch({"dataframe": frame})
    )
    outcome = batch.validate(
        suite(table, (), only=failed),
        result_format={"result_format": "COMPLETE", "unexpected_index_column_names": list(_KEYS)},
    )
    return [row for result in outcome.results for row in _rows_of_result(result)]


def _rows_of_result(result: ExpectationValidationResult) -> list[dict[str, Any]]:
    meta, column = result.expectation_config.meta, result.expectation_config.kwargs["column"]
    said = {name: meta[name] for name in ("rule", "severity", "expected")}
    return [
        said | {key: row[key] for key in _KEYS} | {"message": f"{column} is {row.get(column)}"}
        for row in result.result.get("unexpected_index_list") or []
    ]
