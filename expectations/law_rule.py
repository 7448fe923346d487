"""A law as Great Expectations checks it. Importing this imports Great Expectations, which takes seconds."""

from __future__ import annotations

from typing import Any, ClassVar

from great_expectations.expectations import UnexpectedRowsExpectation

_COUNT = "unexpected_rows_query.row_count"


class LawHolds(UnexpectedRowsExpectation):
    """Counts the rows that break the law. Its parent collects some of them as well, which runs the query a
    second time for rows that nobody reads: the findings come from the query itself."""

    metric_dependencies: ClassVar[tuple[str, ...]] = (_COUNT,)

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,  # noqa: ARG002
        execution_engine: Any = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        return {"success": metrics[_COUNT] == 0, "result": {"observed_value": metrics[_COUNT]}}
