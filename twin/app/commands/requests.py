"""Commands for requests: what one looks like, and answering files of them."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table as Grid

from twin.app.commands.console import AsJson, err, fail, out
from twin.app.commands.printing import print_explanation
from twin.core.prediction import THROUGHPUT
from twin.core.settings import Settings

if TYPE_CHECKING:
    from training.batch import Asked

# so many rejects are told on the terminal; the file has them all
_SHOWN = 20


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
    predictor: Annotated[
        str,
        typer.Option(help="Who answers: hybrid, analytic, regression, nearest, all of these, or simulated."),
    ] = "hybrid",
    target: Annotated[
        str, typer.Option(help="What is predicted: throughput_msgs_per_s, cpu_ms_per_msg, or all.")
    ] = THROUGHPUT,
    anchor: Annotated[
        Path | None,
        typer.Option(
            help="Own measurements: requests with a column of a target; the answers move with them."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer a file of requests, in their order; a large one on Spark. Rows that are not understood go to a
    second file, NAME.rejects.EXT, with row, field and reason; the others are answered. Exit code 2 if any
    was."""
    from training.registry import NoChampion
    from twin.app.anchoring import anchored
    from twin.app.calibration import NotCalibrated
    from twin.app.predicting import answer_file, read_back
    from twin.app.predictors import ALL, NAMES, asked
    from twin.app.requests import BadRequestFile
    from twin.core.tables import TARGETS

    settings = Settings.from_environment()
    if predictor not in (*NAMES, ALL):
        fail(2, f"{predictor!r} is none of {', '.join((*NAMES, ALL))}")
    if target not in (*TARGETS, ALL):
        fail(2, f"{target!r} is none of {', '.join((*TARGETS, ALL))}")
    if anchor is not None and predictor not in ("hybrid", ALL):
        fail(2, f"--anchor moves the hybrid, not {predictor}")

    def who() -> Asked:
        plain = asked(settings, predictor, target)
        if anchor is None:
            return plain
        pulled, remarks = anchored(plain, anchor)
        for remark in remarks:
            err.print(remark, style="yellow", markup=False, soft_wrap=True)
        return pulled

    with err.status("answering") if err.is_terminal else nullcontext():
        try:
            answered = answer_file(file, to, settings, who)
        except BadRequestFile as error:
            fail(2, str(error))
        except (NoChampion, NotCalibrated) as error:
            fail(1, str(error))
    rejects = read_back(answered.rejects) if answered.rejects else []
    if as_json:
        print(json.dumps({"predictions": read_back(answered.answers), "rejects": rejects}))
    else:
        out.print(
            f"{answered.answered} predicted, {answered.excused} excused: {answered.answers}", soft_wrap=True
        )
    for reject in rejects[:_SHOWN]:
        err.print(f"row {reject['row']}: {reject['field']}: {reject['reason']}", markup=False, soft_wrap=True)
    if len(rejects) > _SHOWN:
        err.print(f"and {len(rejects) - _SHOWN} more")
    if answered.rejects:
        fail(2, f"{answered.rejected} rows rejected: {answered.rejects}")


def explain(
    config: Annotated[
        str, typer.Argument(help="A flat YAML or JSON file, or the configuration_id of something measured.")
    ],
    target: Annotated[str, typer.Option(help="What is predicted.")] = THROUGHPUT,
    as_json: AsJson = False,
) -> None:
    """Why the answer is what it is: what limits it, which demands make it, what was measured nearby and where
    it stands, and what each predictor says."""
    from features.lake import Lake
    from training.registry import NoChampion, champion_model
    from twin.app.asking import BadQuestion, read_configuration
    from twin.app.explaining import explain as explained
    from twin.core.tables import TARGETS

    settings = Settings.from_environment()
    if target not in TARGETS:
        fail(2, f"{target!r} is none of {', '.join(TARGETS)}")
    try:
        configuration = read_configuration(config, settings)
        told = explained(champion_model(settings), Lake(settings), configuration, target)
    except BadQuestion as error:
        fail(2, str(error))
    except NoChampion as error:
        fail(1, str(error))
    if as_json:
        print(json.dumps(told, indent=1))
        return
    print_explanation(told)
