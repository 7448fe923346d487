"""Commands that run the reports' experiments on live brokers, and compare them with the twin."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as Grid

from twin.app.commands.console import AsJson, err, fail, out
from twin.core.settings import Settings

if TYPE_CHECKING:
    from training.live_exam import Paper
    from twin.harness.running import Outcome

harness = typer.Typer(no_args_is_help=True, help="Run the reports' experiments on a live broker.")

Files = Annotated[list[Path], typer.Argument(help="Files that `twin harness run` wrote.")]


@harness.command("list")
def list_experiments(as_json: AsJson = False) -> None:
    """The experiments, which report did the like, and on which brokers they run."""
    from twin.harness.experiments import experiments, scales

    rows: list[dict[str, Any]] = [
        {"name": name, "title": one.title, "after": one.after, "brokers": list(one.brokers)}
        | {f"points_{scale}": len(one.columns(scale)) for scale in scales()}
        for name, one in experiments().items()
    ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    grid = Grid("experiment", "what", "after", "brokers", "points", "quick", box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        points = (str(row[f"points_{scale}"]) for scale in ("standard", "quick"))
        grid.add_row(row["name"], row["title"], row["after"], ", ".join(row["brokers"]), *points)
    out.print(grid)


@harness.command()
def run(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Names of `twin harness list`; all of them if left out.")
    ] = None,
    broker: Annotated[
        list[str] | None,
        typer.Option(
            help="nats, rabbitmq or mqtt, or name=address. Without an address NATS is started for the run "
            "and ended after it; the others are looked for on this machine, or where TWIN_RABBITMQ_URL and "
            "TWIN_MQTT_URL say. Several may be given."
        ),
    ] = None,
    scale: Annotated[str, typer.Option(help="standard, exam, quick or tiny: how many points, how long.")] = (
        "standard"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="The same as --scale quick.")] = False,
    repeats: Annotated[int | None, typer.Option(help="Times that each point is run.", min=1)] = None,
    to: Annotated[Path | None, typer.Option("--out", help="Write here and leave the inbox alone.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run experiments. Results are JSON lines that land in the inbox and are taken like any other file.
    Ctrl-C keeps every finished point."""
    from twin.app.harnessing import BadChoice, chosen, run_experiments
    from twin.harness.brokers.interface import BrokerProblem

    settings = Settings.from_environment()
    # whoever asks us to end wants what Ctrl-C wants: nothing left behind on a broker
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        choice = chosen(experiments or [], broker or [], "quick" if quick else scale, repeats)
    except BadChoice as error:
        fail(2, str(error))
    outcomes: list[Outcome] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("starting", total=None)

        def told(outcome: Outcome) -> None:
            outcomes.append(outcome)
            progress.update(task, advance=1, description=f"{outcome.point.experiment} {outcome.point.broker}")
            if not as_json:
                progress.console.print(_line(outcome), highlight=False, markup=False, soft_wrap=True)

        problem = None
        try:
            paths = run_experiments(
                settings, choice, to, lambda total: progress.update(task, total=total), told
            )
        except BrokerProblem as error:
            problem = str(error)
    if as_json:
        print(json.dumps([_told(one) for one in outcomes], indent=1))
    if problem is not None:
        fail(1, f"{problem}{'; the finished points are kept' if outcomes else ''}")
    if not as_json:
        done = sum(one.problem is None for one in outcomes)
        out.print(f"{done} runs in {', '.join(map(str, paths))}", soft_wrap=True)
    if any(one.problem is not None and one.offered for one in outcomes):
        raise typer.Exit(1)


@harness.command()
def compare(files: Files, as_json: AsJson = False) -> None:
    """What was measured beside what the champion predicts."""
    from training.registry import NoChampion, champion_model
    from twin.app.comparing import compared
    from twin.harness.measured import measured
    from twin.sources.documents import Refused

    try:
        points = measured(files)
        model = champion_model(Settings.from_environment())
    except Refused as error:
        fail(2, str(error))
    except NoChampion as error:
        fail(1, str(error))
    rows = compared(points, model)
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        point = f"{row['experiment']} {row['configuration']['product']} "
        point += _varied(row["experiment"], row["configuration"])
        out.print(f"{point}: {_against(row)}", highlight=False, markup=False, soft_wrap=True)
    errors = [abs(row["error_pct"]) for row in rows if row["error_pct"] is not None]
    said = (
        f"median error {median(errors):.1f}% over {len(errors)} points" if errors else "no point is predicted"
    )
    excused = len(rows) - len(errors)
    out.print(said + (f"; {excused} excused: {_first_excuse(rows)}" if excused else ""), highlight=False)


@harness.command()
def exam(
    files: Files,
    predictor: Annotated[str, typer.Option(help="hybrid, analytic, regression or nearest.")] = "hybrid",
    rows: Annotated[bool, typer.Option("--rows", help="Every point that was predicted.")] = False,
    as_json: AsJson = False,
) -> None:
    """Learn from at most a third of what was measured and predict the rest. Exit code 1 where an error is
    greater than it may be."""
    from training.live_exam import live_exam
    from training.model import PREDICTORS
    from twin.app.comparing import examined
    from twin.harness.measured import measured
    from twin.sources.documents import Refused

    if predictor not in PREDICTORS:
        fail(2, f"{predictor!r} is none of {', '.join(PREDICTORS)}")
    try:
        papers = live_exam(measured(files), predictor)
    except Refused as error:
        fail(2, str(error))
    if as_json:
        print(json.dumps([examined(one, rows) for one in papers], indent=1))
    else:
        _print_papers(papers, rows)
    if not all(one.passed for one in papers):
        raise typer.Exit(1)


def _print_papers(papers: list[Paper], rows: bool) -> None:
    from twin.app.comparing import examined

    grid = Grid(
        "experiment", "product", "learned", "asked", "median error", "may be", "greatest", "run noise", "",
        box=SIMPLE_HEAD, pad_edge=False,
    )  # fmt: skip
    for one in papers:
        told = examined(one, rows=False)
        name = one.experiment + (", persistent" if one.persistent else "")
        grid.add_row(
            name, one.product, str(one.learned), str(told["asked"]), _percent(told["median_error_pct"]),
            _percent(one.allowed_pct), _percent(told["greatest_error_pct"]), _percent(told["noise_pct"]),
            "passed" if one.passed else "failed",
        )  # fmt: skip
    out.print(grid)
    for one in papers if rows else ():
        for row in examined(one, rows)["rows"]:
            point = f"{one.experiment} {one.product} {_varied(one.experiment, row['configuration'])}"
            out.print(f"{point}: {_against(row)}", highlight=False, markup=False, soft_wrap=True)


def _against(row: dict[str, Any]) -> str:
    measured = f"measured {row['measured_msgs_per_s']:.4g}"
    if row["noise_pct"] is not None:
        measured += f" (a run scatters by {row['noise_pct']:.1f}%)"
    if row["excuse"] is not None:
        return f"{measured}, excused: {row['excuse']}"
    interval = f"{row['lo90']:.4g} to {row['hi90']:.4g}"
    return f"{measured}, predicted {row['predicted_msgs_per_s']:.4g} ({interval}), {row['error_pct']:+.1f}%"


def _told(outcome: Outcome) -> dict[str, Any]:
    return {
        "experiment": outcome.point.experiment,
        "broker": outcome.point.broker,
        "repeat": outcome.repeat,
        "configuration": outcome.point.columns,
        "summary": outcome.summary,
        "problem": outcome.problem,
    }


def _line(outcome: Outcome) -> str:
    what = outcome.point
    point = f"{what.experiment} {what.broker} {_varied(what.experiment, what.columns)}"
    if outcome.problem is not None:
        return f"{point}: {outcome.problem}"
    rate = outcome.summary.get("average_msgs_per_s", 0.0)
    asked = outcome.point.columns.get("offered_rate_msgs_per_s")
    missed = f" of {asked:.4g} asked for: MISSED" if outcome.missed else ""
    latency = outcome.summary.get("latency_p99_ms")
    return f"{point}: {rate:.4g} msgs/s{missed}" + (f", p99 {latency:.3g} ms" if latency else "")


def _varied(experiment: str, columns: dict[str, Any]) -> str:
    """What tells this point from others of its experiment."""
    from twin.harness.experiments import experiments

    declared = experiments().get(experiment)
    names = declared.varied if declared else ("family",)
    told = []
    for name in names:
        value = columns.get(name)
        if isinstance(value, bool):
            told.append(name if value else f"not {name}")
        elif value not in (None, "none", 0):
            told.append(value if isinstance(value, str) else f"{name}={value}")
    return " ".join(told)


def _first_excuse(rows: list[dict[str, Any]]) -> str:
    return next((row["excuse"] for row in rows if row["excuse"]), "")


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}%"
