"""The text of a PDF, read by a process of its own: a crafted one can keep its reader busy, or filling memory,
for ever. This module is that process too."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from twin.core.outside import BadInput

# the longest of the reports has a tenth of that
MOST_PAGES = 1_000
MOST_SECONDS = 120
_MOST_MEMORY = 2 * 2**30
_MOST_CHARACTERS = 32 * 2**20


def pdf_lines(name: str, raw: bytes, seconds: float = MOST_SECONDS) -> list[str]:
    """Text line by line; a ruled table's rows as pipe rows, in its place."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "twin.sources.pdf"],
            input=raw,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BadInput(f"{name} is no readable PDF: after {seconds:g} s it was still being read") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        reason = said[-1] if done.returncode == 2 and said else "it took more memory than a PDF may"
        raise BadInput(f"{name} is no readable PDF: {reason}")
    lines: list[str] = json.loads(done.stdout)
    return lines


def lines_of(raw: bytes) -> list[str]:
    """Here and now, for as long as it takes."""
    import pdfplumber

    found: list[str] = []
    characters = 0
    try:
        with pdfplumber.open(io.BytesIO(raw)) as pdf:
            for number, page in enumerate(pdf.pages, start=1):
                if number > MOST_PAGES:
                    raise BadInput(f"it has more than {MOST_PAGES} pages")
                lines = list(_page_lines(page))
                characters += sum(map(len, lines))
                if characters > _MOST_CHARACTERS:
                    raise BadInput("it has more text than a document may")
                found += lines
                page.close()
    except BadInput:
        raise
    # what goes wrong inside a crafted document is of any type
    except Exception as error:
        raise BadInput(str(error).split("\n")[0] or type(error).__name__) from error
    return found


def _page_lines(page: Any) -> Iterator[str]:
    tables = sorted(page.find_tables(), key=lambda table: table.bbox[1])
    above = 0.0
    for table in tables:
        top, bottom = table.bbox[1], table.bbox[3]
        yield from _band_lines(page, above, top)
        for row in table.extract():
            yield "| " + " | ".join(re.sub(r"\s+", " ", cell or "").strip() for cell in row) + " |"
        yield ""
        above = bottom
    yield from _band_lines(page, above, float(page.height))


def _band_lines(page: Any, top: float, bottom: float) -> list[str]:
    if bottom - top < 1:
        return []
    return str(page.crop((0, top, page.width, bottom)).extract_text() or "").split("\n")


def _main() -> int:
    import logging
    import resource

    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    try:
        lines = lines_of(sys.stdin.buffer.read())
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    json.dump(lines, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
