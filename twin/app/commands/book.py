"""The command that writes the book."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from twin.app.commands.console import AsJson, err, fail, out
from twin.core.settings import Settings


def book(
    out_folder: Annotated[
        Path | None, typer.Option("--out", help="The folder to write; `book` in the home when left out.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a static site: every table of every report, measured beside held out, with the exam, the
    findings, and the cards of model and data. It needs no network and no server."""
    from features.lake import NoSuchTable
    from twin.app.book.building import NotABook, write_book

    with err.status("reading") if err.is_terminal else nullcontext() as status:
        try:
            written = write_book(
                Settings.from_environment(),
                out_folder,
                (lambda what: status.update(what)) if status else lambda _: None,
            )
        except NotABook as error:
            fail(2, str(error))
        except NoSuchTable as error:
            fail(1, f"{error}: run `twin ingest` or `make run` first")
    if as_json:
        print(json.dumps(asdict(written), indent=1))
        return
    out.print(
        f"{written.tables} tables, {written.charts} charts, {written.figures} figures, "
        f"{written.findings} findings: {written.page}",
        soft_wrap=True,
        highlight=False,
    )
    if written.champion is None:
        out.print("no model is registered yet: `twin train`, then write the book again")
