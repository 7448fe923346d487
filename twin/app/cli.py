"""The `twin` command. Exit codes: 0 done, 1 failed, 2 bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
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
    from twin.app.requests import BadRequestFile, read_requests

    try:
        read_requests(file)  # bad input is told before a model is loaded
        answered = answer_file(file, out, RegisteredPredictor(Settings.from_environment()))
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
