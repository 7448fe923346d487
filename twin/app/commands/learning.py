"""Commands that train models, examine them, and choose among them."""

from __future__ import annotations

import json
from contextlib import nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid

from twin.app.commands.console import AsJson, err, fail, out
from twin.core.settings import Settings

models = typer.Typer(
    invoke_without_command=True, help="Registered versions with their scores; promote one, or roll back."
)


def train(
    where: Annotated[
        str | None, typer.Option(help="SQL predicate over the measurements to learn from; all by default.")
    ] = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="Search the regressor's hyper-parameters on nested grouped folds.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train on all that was ingested, examine on configurations that were not seen, register as challenger,
    and promote to champion if expectations passed and the median error is not more than 5% larger."""
    from features.lake import NoSuchTable
    from features.predicates import BadPredicate, checked
    from training.training import NothingToLearn, headline
    from training.training import train as train_model
    from twin.core.tables import MEASUREMENTS

    settings = Settings.from_environment()
    with err.status("training") if err.is_terminal else nullcontext() as status:
        try:
            if where is not None:
                checked(where, MEASUREMENTS)
            _follow_figures(settings)
            trained = train_model(
                settings,
                where,
                tune,
                (lambda what: status.update(what)) if status else lambda _: None,
            )
        except BadPredicate as error:
            fail(2, str(error))
        except NoSuchTable as error:
            fail(1, f"{error}: run `make run` first")
        except NothingToLearn as error:
            fail(2, str(error))
    if as_json:
        print(json.dumps(asdict(trained), indent=1))
        return
    first = headline(trained.scores)
    state = "registered" if trained.changed else "unchanged"
    role = "champion" if trained.champion else "not promoted"
    out.print(f"version {trained.version} ({state}, {role}): {trained.reason}", highlight=False)
    if first:
        out.print(
            f"hybrid on {first['n']:.0f} configurations it had not seen: median error "
            f"{first['median_ape']:.2f}%, 90% interval covers {100 * first['coverage90']:.1f}%"
        )


def backtest(
    protocol: Annotated[
        str | None, typer.Option(help="configuration, table, anchored or platform.", show_default=False)
    ] = None,
    hold_out: Annotated[
        str | None,
        typer.Option(help="SQL predicate over the measurements: configurations to hold out together."),
    ] = None,
    chart: Annotated[Path | None, typer.Option(help="Draw the exam into this .png, .svg or .pdf.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Every row with what each predictor said.")] = False,
    as_json: AsJson = False,
) -> None:
    """What the predictors say about rows they were not given: everything is fitted anew without them."""
    from features.lake import NoSuchTable
    from features.predicates import BadPredicate, checked
    from training.splits import PROTOCOLS
    from twin.app.backtesting import NothingHeldOut, run_backtest
    from twin.app.charts import FORMATS
    from twin.core.spreadsheets import shielded_frame
    from twin.core.tables import MEASUREMENTS

    if (protocol is None) == (hold_out is None):
        fail(2, "give either --protocol or --hold-out")
    if protocol is not None and protocol not in PROTOCOLS:
        fail(2, f"{protocol!r} is none of {', '.join(PROTOCOLS)}")
    if chart is not None and chart.suffix.lower() not in FORMATS:
        fail(2, f"{chart} is none of {', '.join(FORMATS)}")
    settings = Settings.from_environment()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("fitting without each fold", total=None)
        try:
            if hold_out is not None:
                checked(hold_out, MEASUREMENTS)
            _follow_figures(settings)
            exam = run_backtest(
                settings,
                protocol,
                hold_out,
                chart,
                lambda done, of: progress.update(task, completed=done, total=of),
            )
        except (BadPredicate, NothingHeldOut) as error:
            fail(2, str(error))
        except NoSuchTable as error:
            fail(1, f"{error}: run `make run` first")
    if as_json:
        said: dict[str, Any] = {"protocol": exam.protocol, "targets": exam.scores}
        if rows:
            said["rows"] = json.loads(exam.rows.to_json(orient="records", double_precision=15))
        print(json.dumps(said, indent=1))
        return
    if rows:
        shielded_frame(exam.rows).to_csv(out.file, index=False)
        return
    for target, scores in exam.scores.items():
        out.print(_scores_grid(target, scores))
    if chart is not None:
        out.print(f"chart: {chart}", soft_wrap=True)


def _follow_figures(settings: Settings) -> None:
    """Whatever was ingested or corrected since the feature tables were built is in them afterwards."""
    from features.lake import Lake, NoSuchTable
    from twin.app.pipeline import NothingToDo, build_features
    from twin.core.tables import FIGURES, RUNS

    lake = Lake(settings)
    if lake.rows(FIGURES) is None and lake.rows(RUNS) is None:
        raise NoSuchTable("nothing has been ingested yet")
    with suppress(NothingToDo):
        build_features(settings)


def _scores_grid(target: str, scores: dict[str, Any]) -> Grid:
    grid = Grid(title=f"{target}, errors in %", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in ("rows of", "predictor", "n", "excused", "median", "mean", "P90", "covers", "width"):
        grid.add_column(name, no_wrap=True, justify="left" if name in ("rows of", "predictor") else "right")
    parts = {"all": scores["overall"], **scores["reports"], **scores.get("views", {})}
    for part, predictors in parts.items():
        for place, (predictor, one) in enumerate(predictors.items()):
            cells = [_cell(one[name]) for name in ("median_ape", "mape", "p90_ape", "coverage90", "width90")]
            label = "" if place else part
            grid.add_row(label, predictor, str(one["n"]), str(one["n_excused"]), *cells)
        grid.add_section()
    return grid


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


@models.callback()
def list_models(context: typer.Context, as_json: AsJson = False) -> None:
    """Registered versions, newest first."""
    if context.invoked_subcommand is not None:
        return
    from training.registry import Registry
    from training.training import headline

    listed = Registry(Settings.from_environment()).listed()
    if as_json:
        print(json.dumps([asdict(one) for one in listed], indent=1))
        return
    grid = Grid("version", "alias", "made", "median error", "covers", "reason", box=SIMPLE_HEAD)
    for one in listed:
        first = headline(one.scores)
        grid.add_row(
            one.version,
            ", ".join(one.aliases),
            one.created,
            f"{first['median_ape']:.2f}%" if first else "",
            f"{100 * first['coverage90']:.1f}%" if first else "",
            one.reason,
        )
    out.print(grid)


@models.command()
def promote(version: Annotated[str, typer.Argument(help="The version to make champion.")]) -> None:
    """Make a version the champion by hand."""
    from training.registry import NoSuchModel, Registry

    try:
        Registry(Settings.from_environment()).promote(version, "promoted by hand")
    except NoSuchModel as error:
        fail(2, str(error))
    out.print(f"version {version} is champion")


@models.command()
def rollback() -> None:
    """Give the title back to the champion's predecessor."""
    from training.registry import NoChampion, NoSuchModel, Registry

    try:
        version = Registry(Settings.from_environment()).roll_back()
    except (NoSuchModel, NoChampion) as error:
        fail(1, str(error))
    out.print(f"version {version} is champion again")
