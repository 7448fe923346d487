"""Commands for requests: what one looks like, and answering files of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as Grid

from twin.app.commands.console import AsJson, err, fail, out
from twin.core.settings import Settings


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
            out.print(f"[bold]{kind}[/bold]: {', '.join(members)}")
        return
    fields = fields_named(name)
    if fields is None:
        fail(2, f"{name!r} is neither a family ({', '.join(FAMILIES)}) nor a table ({', '.join(TABLES)})")
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
    out.print(grid)


def example(
    family: Annotated[str, typer.Argument(help="A request family; `twin schema` lists them.")],
    as_json: AsJson = False,
) -> None:
    """A valid configuration file to start from: YAML, or one JSON line for a .jsonl request file."""
    from twin.app.describing import example_yaml, flat_example
    from twin.core.configuration import FAMILIES

    if family not in FAMILIES:
        fail(2, f"{family!r} is not a family; there is {', '.join(FAMILIES)}")
    print(json.dumps(flat_example(family)) if as_json else example_yaml(family), end="\n" if as_json else "")


def predict(
    file: Annotated[
        Path, typer.Argument(help="Requests: .csv, .jsonl or .parquet; a flat configuration a row.")
    ],
    to: Annotated[
        Path | None,
        typer.Option("--out", help="Where the answers go; by default beside FILE, as NAME.predictions.EXT."),
    ] = None,
    predictor: Annotated[str, typer.Option(help="Who answers: regression or analytic.")] = "regression",
    as_json: AsJson = False,
) -> None:
    """Answer a file of requests, in their order. Rows that are not understood go to a second file,
    NAME.rejects.EXT, with row, field and reason; the others are answered. Exit code 2 if any was."""
    from training.registry import NoChampion
    from twin.app.calibration import NotCalibrated
    from twin.app.predicting import answer_file
    from twin.app.predictors import PREDICTORS
    from twin.app.requests import BadRequestFile

    if predictor not in PREDICTORS:
        fail(2, f"{predictor!r} is none of {', '.join(PREDICTORS)}")
    try:
        answered = answer_file(file, to, lambda: PREDICTORS[predictor](Settings.from_environment()))
    except BadRequestFile as error:
        fail(2, str(error))
    except (NoChampion, NotCalibrated) as error:
        fail(1, str(error))
    if as_json:
        print(
            json.dumps({"predictions": answered.rows, "rejects": [r.model_dump() for r in answered.rejected]})
        )
    else:
        excused = sum("excuse" in row for row in answered.rows)
        out.print(
            f"{len(answered.rows) - excused} predicted, {excused} excused: {answered.answers}", soft_wrap=True
        )
    for reject in answered.rejected:
        err.print(f"row {reject.row}: {reject.field}: {reject.reason}", markup=False, soft_wrap=True)
    if answered.rejects:
        fail(2, f"{len({r.row for r in answered.rejected})} rows rejected: {answered.rejects}")
