"""One page in front of the Data Docs that a person can read in a minute; made from the tables alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader

from expectations.gate import docs_index
from expectations.laws import MEASUREMENT_LAWS
from expectations.run_laws import RUN_LAWS
from features.lake import Lake
from twin.core.settings import Settings
from twin.core.tables import DOCUMENTS, FINDINGS, MEASUREMENTS, QUARANTINE

_PAGES = Path(__file__).parent / "pages"


def summary_page(settings: Settings) -> Path:
    return settings.home / "quality" / "index.html"


def counts_by_source(lake: Lake) -> dict[str, dict[str, int]]:
    """How many figures of each source are trusted, quarantined, and warned of."""
    counts = {
        "trusted": lake.pandas(MEASUREMENTS).groupby("source_id").size(),
        "quarantined": lake.pandas(QUARANTINE).groupby("source_id").size(),
        "warnings": lake.pandas(FINDINGS).query("severity == 'warning'").groupby("source_id").size(),
    }
    sources = lake.pandas(DOCUMENTS)["source_id"]
    return {one: {what: int(of.get(one, 0)) for what, of in counts.items()} for one in sources}


def write_summary(settings: Settings, lake: Lake, refused: dict[str, str]) -> None:
    """`refused`: files that could not be read, and why."""
    documents, findings, trusted = (lake.pandas(table) for table in (DOCUMENTS, FINDINGS, MEASUREMENTS))
    per_source = trusted.groupby("source_id").size()
    sources = [
        _source(
            card,
            findings[findings["source_id"] == card["source_id"]],
            int(per_source.get(card["source_id"], 0)),
        )
        for card in documents.to_dict("records")
    ]
    page = summary_page(settings)
    template = Environment(loader=FileSystemLoader(_PAGES), autoescape=True).get_template("summary.html.j2")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(
        template.render(
            sources=sources,
            rules=_rules(findings),
            refused=refused,
            docs=docs_index(settings).relative_to(page.parent).as_posix(),
            totals={
                "figures": int(documents["figures"].sum()),
                "trusted": len(trusted),
                "findings": len(findings),
                "errors": sum(source["errors"] for source in sources),
                "warnings": sum(source["warnings"] for source in sources),
            },
        ),
        encoding="utf-8",
    )


def _source(card: dict[Any, Any], findings: pd.DataFrame, trusted: int) -> dict[str, Any]:
    by_severity = findings.groupby("severity")["figure_id"].nunique()
    charts = (card["charts_missing"] or "").split("; ")
    return {
        **card,
        "trusted": trusted,
        "errors": int(by_severity.get("error", 0)),
        "warnings": int(by_severity.get("warning", 0)),
        "charts": f"{len(charts)}: {charts[0]} to {charts[-1]}" if len(charts) > 1 else charts[0],
        "findings": findings.sort_values(["line", "rule"]).to_dict("records"),
    }


def _rules(findings: pd.DataFrame) -> list[dict[str, Any]]:
    described = {law.name: law.description for law in (*MEASUREMENT_LAWS, *RUN_LAWS)}
    return [
        {
            "name": name,
            "severity": group["severity"].iloc[0],
            "description": described.get(str(name), "a declared column's type, range or choices"),
            "findings": len(group),
        }
        for name, group in findings.groupby("rule")
    ]
