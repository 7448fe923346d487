"""Rewrites the shipped figures from the documents in TWIN_REPORTS_DIR: `python -m twin.sources.refresh`."""

from __future__ import annotations

import sys

from twin.core.settings import Settings
from twin.sources.document import Document
from twin.sources.reading import read_figures
from twin.sources.report import recognise, reports
from twin.sources.shipped import ship


def main() -> None:
    folder = Settings.from_environment().reports
    if folder is None:
        sys.exit("TWIN_REPORTS_DIR does not say where the report documents are")
    for path in sorted(folder.glob("*.txt")):
        document = Document.load(path)
        if report := recognise(document, reports().values()):
            figures = read_figures(document, report)
            ship(report.source_id, figures)
            print(f"{report.source_id}: {len(figures)} figures")


if __name__ == "__main__":
    main()
