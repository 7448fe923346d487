"""Rewrites the shipped figures from the documents in TWIN_REPORTS_DIR.

python -m twin.sources.refresh [SOURCE_ID ...]
"""

from __future__ import annotations

import sys

from twin.core.settings import Settings
from twin.sources.declarations import reports
from twin.sources.document import Document
from twin.sources.interpreting import interpret
from twin.sources.reading import read_figures, recognise
from twin.sources.shipped import ship


def main(wanted: list[str]) -> None:
    folder = Settings.from_environment().reports
    if folder is None:
        sys.exit("TWIN_REPORTS_DIR does not say where the report documents are")
    for path in sorted(folder.glob("*.txt")):
        document = Document.load(path)
        report = recognise(document, reports())
        if report and (not wanted or report.source_id in wanted):
            figures = read_figures(document, report)
            interpret(figures, report)
            ship(report.source_id, figures)
            print(f"{report.source_id}: {len(figures)} figures")


if __name__ == "__main__":
    main(sys.argv[1:])
