"""A row of the findings, for tests that need a table with something in it."""

from __future__ import annotations

ROW = {
    "rule": "a_rule", "severity": "error", "figure_id": "s:1:0", "source_id": "s", "line": 1,
    "printed": "1", "expected": "2", "message": "because",
}  # fmt: skip
