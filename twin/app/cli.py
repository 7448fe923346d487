"""The `twin` command. Exit codes: 0 done, 1 failed, 2 bad input."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from twin.core.settings import Settings

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Predicts the throughput of message-broker configurations nobody has measured.",
)
_out = Console()
_err = Console(stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def run() -> None:
    """The main job: reports to predictions, from nothing, through real Airflow on this machine."""
    from twin.app.local_airflow import AirflowFailed
    from twin.app.main_job import ChainFailed
    from twin.app.main_job import run as run_main_job

    try:
        run_main_job(Settings.from_environment(), _out)
    except (AirflowFailed, ChainFailed) as error:
        _fail(1, str(error))


@app.command()
def ingest(
    paths: Annotated[
        list[Path], typer.Argument(help="Report documents (.txt, .md, .pdf), or folders of them.")
    ],
    source: Annotated[
        str | None, typer.Option(help="Source id of a document that is not known by its content.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read documents into bronze and validate: silver, quarantine, findings. A file that cannot be read is
    refused with the reason and changes nothing; the others are taken. Exit code 2 if any was refused."""
    from features.lake import WriteFailed
    from twin.app.pipeline import ingest_documents
    from twin.sources.documents import ReadDocument, Refused, files_in, read_document

    documents: dict[str, ReadDocument] = {}
    refused: dict[str, str] = {}
    for path in files_in(paths):
        try:
            document = read_document(path, source)
            documents[document.card.source_id] = document
        except (Refused, OSError) as error:
            refused[str(path)] = str(error)
    tables = {}
    if documents:
        with _err.status("reading and validating") if _err.is_terminal else nullcontext():
            try:
                tables = ingest_documents(Settings.from_environment(), documents.values())
            except WriteFailed as error:
                _fail(1, f"{error}; nothing of this run was committed to it, the next run starts afresh")
    if as_json:
        cards = [document.card.model_dump(mode="json") for document in documents.values()]
        print(json.dumps({"documents": cards, "tables": tables, "refused": refused}))
    else:
        for document in documents.values():
            _out.print(f"{document.card.source_id}: {document.card.figures} figures", highlight=False)
        for name, table in tables.items():
            state = "new version" if table["changed"] else "unchanged, version"
            _out.print(f"{name}: {table['rows']} rows ({state} {table['version']})", highlight=False)
    for document in documents.values():
        if document.remark:
            _err.print(f"{document.card.document_name}: {document.remark}", style="yellow", soft_wrap=True)
    for name, reason in refused.items():
        _err.print(f"refused {name}: {reason}", markup=False, soft_wrap=True)
    if refused or not documents:
        _fail(2, f"{len(refused)} refused" if refused else "nothing to ingest")


@app.command()
def export(
    table: Annotated[str, typer.Argument(help="A table; `twin schema` lists them.")],
    where: Annotated[str | None, typer.Option(help="SQL predicate over the table's columns.")] = None,
    fmt: Annotated[str, typer.Option("--format", help="csv, jsonl or parquet.")] = "csv",
    version: Annotated[int | None, typer.Option(help="An older version; the newest when left out.")] = None,
) -> None:
    """Write a table to standard output."""
    from features.lake import BadPredicate, Lake, NoSuchTable, NoSuchVersion
    from twin.app.exporting import FORMATS
    from twin.core.tables import TABLES

    kept = {name: one for name, one in TABLES.items() if one.layer != "file"}
    if table not in kept:
        _fail(2, f"{table!r} is not a table; there is {', '.join(kept)}")
    if fmt not in FORMATS:
        _fail(2, f"{fmt!r} is none of {', '.join(FORMATS)}")
    try:
        rows = Lake(Settings.from_environment()).arrow(kept[table], version, where)
    except (BadPredicate, NoSuchVersion) as error:
        _fail(2, str(error))
    except NoSuchTable as error:
        _fail(1, str(error))
    FORMATS[fmt](rows)


@app.command()
def quality(as_json: AsJson = False) -> None:
    """The findings of the last validation: which figure breaks which rule, and what was expected."""
    from expectations.summary import summary_page
    from features.lake import Lake, NoSuchTable
    from twin.core.tables import FINDINGS

    settings = Settings.from_environment()
    try:
        findings = Lake(settings).arrow(FINDINGS).to_pylist()
    except NoSuchTable:
        _fail(1, "nothing has been validated yet: run `twin ingest` or `make run`")
    findings.sort(key=lambda finding: (finding["source_id"], finding["line"], finding["rule"]))
    columns = ("rule", "severity", "source_id", "line", "printed", "expected", "message")
    if as_json:
        print(json.dumps([{name: finding[name] for name in columns} for finding in findings], indent=1))
        return
    for source_id, of_source in groupby(findings, key=lambda finding: finding["source_id"]):
        _out.print(f"\n[bold]{source_id}[/bold]", highlight=False)
        for finding in of_source:
            style = "red" if finding["severity"] == "error" else "yellow"
            head = f"  line {finding['line']}: [{style}]{finding['rule']}[/{style}]: "
            body = f"printed {finding['printed']!r}, expected {finding['expected']}; {finding['message']}"
            _out.print(head + escape(body), highlight=False, soft_wrap=True)
    errors = sum(finding["severity"] == "error" for finding in findings)
    _out.print(
        f"{errors} errors, {len(findings) - errors} warnings; as a page: {summary_page(settings)}",
        soft_wrap=True,
    )


@app.command()
def schema(
    name: Annotated[
        str | None, typer.Argument(help="A request family or a table.", metavar="[FAMILY|TABLE]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The columns of a request family or a table, with units and ranges; without a name, what there is."""
    from twin.app.describing import defaults_of, described, fields_named
    from twin.core.configuration import FAMILIES
    from twin.core.tables import TABLES

    if name is None:
        names = {"families": list(FAMILIES), "tables": list(TABLES)}
        if as_json:
            print(json.dumps(names))
            return
        for kind, members in names.items():
            _out.print(f"[bold]{kind}[/bold]: {', '.join(members)}")
        return
    fields = fields_named(name)
    if fields is None:
        _fail(2, f"{name!r} is neither a family ({', '.join(FAMILIES)}) nor a table ({', '.join(TABLES)})")
    rows = described(fields, defaults_of(name))
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    grid = Grid("column", "type", "unit", "needed", "allowed", "meaning", title=name, title_justify="left")
    for row in rows:
        needed = "yes" if row["required"] else ("" if row["default"] is None else f"else {row['default']}")
        grid.add_row(
            row["column"], row["type"], row["unit"] or "", needed, row["allowed"] or "", row["description"]
        )
    _out.print(grid)


@app.command()
def example(
    family: Annotated[str, typer.Argument(help="A request family; `twin schema` lists them.")],
    as_json: AsJson = False,
) -> None:
    """A valid configuration file to start from: YAML, or one JSON line for a .jsonl request file."""
    from twin.app.describing import example_yaml, flat_example
    from twin.core.configuration import FAMILIES

    if family not in FAMILIES:
        _fail(2, f"{family!r} is not a family; there is {', '.join(FAMILIES)}")
    print(json.dumps(flat_example(family)) if as_json else example_yaml(family), end="\n" if as_json else "")


@app.command()
def predict(
    file: Annotated[
        Path, typer.Argument(help="Requests: .csv, .jsonl or .parquet; a flat configuration a row.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Where the answers go; by default beside FILE, as NAME.predictions.EXT."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer a file of requests, in their order. Rows that are not understood go to a second file,
    NAME.rejects.EXT, with row, field and reason; the others are answered. Exit code 2 if any was."""
    from training.registry import NoChampion, RegisteredPredictor
    from twin.app.predicting import answer_file
    from twin.app.requests import BadRequestFile

    try:
        answered = answer_file(file, out, lambda: RegisteredPredictor(Settings.from_environment()))
    except BadRequestFile as error:
        _fail(2, str(error))
    except NoChampion as error:
        _fail(1, str(error))
    if as_json:
        print(
            json.dumps({"predictions": answered.rows, "rejects": [r.model_dump() for r in answered.rejected]})
        )
    else:
        excused = sum("excuse" in row for row in answered.rows)
        _out.print(
            f"{len(answered.rows) - excused} predicted, {excused} excused: {answered.answers}", soft_wrap=True
        )
    for reject in answered.rejected:
        _err.print(f"row {reject.row}: {reject.field}: {reject.reason}", markup=False, soft_wrap=True)
    if answered.rejects:
        _fail(2, f"{len({r.row for r in answered.rejected})} rows rejected: {answered.rejects}")


def _fail(code: int, message: str) -> NoReturn:
    _err.print(f"twin: {message}", style="red", markup=False, soft_wrap=True)
    raise typer.Exit(code)


def main() -> None:
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
