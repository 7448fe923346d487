"""What stands on the model card and the data card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from expectations.laws import MEASUREMENT_LAWS, RESIDUAL_LAWS
from expectations.run_laws import RUN_LAWS
from twin.app.book.figures import Figure
from twin.core.metrics import METRICS


@dataclass(frozen=True)
class Quantity:
    metric: str
    description: str
    unit: str
    figures: int


@dataclass(frozen=True)
class Rule:
    name: str
    description: str
    findings: int


def as_html(card: str) -> Markup:
    """Markdown as a part of a page: its headings come below the page's own."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(card)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + 1, 6)}"
    html = str(parser.renderer.render(tokens, parser.options, {}))
    # HTML in the card was escaped; a table that is wider than the page is scrolled, by keys too
    framed = html.replace("<table>", '<div class="scroll" tabindex="0" role="group"><table>')
    return Markup(framed.replace("</table>", "</table></div>"))  # noqa: S704


def units_of(figures: Iterable[Figure]) -> list[Quantity]:
    counted = Counter(one.metric for one in figures)
    return [
        Quantity(name, METRICS[name].description, METRICS[name].unit or "", counted[name])
        for name in METRICS
        if name in counted
    ]


def rules_of(findings: Iterable[Mapping[str, Any]]) -> list[Rule]:
    described = {law.name: law.description for law in (*MEASUREMENT_LAWS, *RESIDUAL_LAWS, *RUN_LAWS)}
    counted = Counter(str(one["rule"]) for one in findings)
    other = "A declared column has its type, range or choices"
    return [Rule(name, described.get(name, other), count) for name, count in sorted(counted.items())]
