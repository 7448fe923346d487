"""Data Docs that need no network.

Great Expectations' pages load styles, scripts and a picture from the web; offline they are bare, online
they tell others that they were read. Their links are replaced by one stylesheet of our own.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

_STYLES = Path(__file__).parent / "pages" / "data_docs.css"
_FROM_THE_WEB = re.compile(
    r'<link[^>]*href="https?://[^>]*>|<script[^>]*src="https?://[^>]*>\s*</script>|<img[^>]*src="https?://[^>]*>'
)
_MARK = "<!-- offline -->"


def make_offline(site: Path) -> None:
    """Every page of the site that was (re)built since the last time, and an index that needs no script."""
    styles = site / "static" / "styles" / _STYLES.name
    styles.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_STYLES, styles)
    pages = sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html"))
    (site / "index.html").write_text(
        _index([page for page in pages if page != "index.html"]), encoding="utf-8"
    )
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        if _MARK in text:
            continue
        up = "../" * (len(page.relative_to(site).parts) - 1)
        link = f'{_MARK}<link rel="stylesheet" href="{up}static/styles/{_STYLES.name}">'
        page.write_text(_FROM_THE_WEB.sub("", text).replace("</head>", f"{link}</head>", 1), encoding="utf-8")


def _index(pages: list[str]) -> str:
    """Suites first, then validations from the newest to the oldest."""
    suites = [page for page in pages if page.startswith("expectations/")]
    validations = [page for page in reversed(pages) if page.startswith("validations/")]
    items = "".join(
        f'<li><a href="{page}">{page.removesuffix(".html")}</a></li>' for page in (*suites, *validations)
    )
    head, body = "<title>Data Docs</title>", f"<h1>Data Docs</h1><ul>{items}</ul>"
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"
