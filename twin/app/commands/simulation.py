"""The command that plays a configuration out: percentiles of its steady state, or a failure over time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid

from twin.app.commands.console import AsJson, err, fail, out
from twin.app.commands.model import CONFIG, CalibrationFile, predictor_of
from twin.core.settings import Settings

if TYPE_CHECKING:
    from twin.app.simulating import Steady
    from twin.simulation.transient import Transient

_SHOWN = 14


def simulate(
    config: Annotated[str, typer.Argument(help=CONFIG)],
    transient: Annotated[
        bool,
        typer.Option(
            "--transient",
            help="What happens when something fails: the network of a cluster, a box of a rules hub.",
        ),
    ] = False,
    runs: Annotated[int, typer.Option(help="Independent runs that the intervals come from.", min=2)] = 10,
    messages: Annotated[
        int | None, typer.Option(help="Messages per run; by default as many as the load needs.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same figures.", min=0)] = 1,
    variation: Annotated[
        float,
        typer.Option(
            help="How far service times scatter, as a share of their mean: 1 exponential, 0 none.", min=0
        ),
    ] = 1.0,
    takeover: Annotated[
        float, typer.Option(help="Rules hub: seconds until the other box runs the failed one's work.", min=0)
    ] = 60.0,
    second_hub: Annotated[
        bool, typer.Option("--second-hub", help="Cluster: another hub takes the messages meanwhile.")
    ] = False,
    chart: Annotated[
        Path | None, typer.Option(help="Draw the failure into this .png, .svg, .pdf, or animated .gif.")
    ] = None,
    calibration: CalibrationFile = None,
    as_json: AsJson = False,
) -> None:
    """Play a configuration out message by message: rate, response times and their percentiles with 95%
    intervals, beside the formula; or, with --transient, what happens after a failure, second by second."""
    from twin.app import charts
    from twin.app.asking import BadQuestion, read_configuration
    from twin.app.simulating import NotSimulated, simulated_steadily, simulated_transient
    from twin.queueing.network import BadNetwork
    from twin.simulation.transient import Scenario

    settings = Settings.from_environment()
    if chart is not None and not transient:
        fail(2, "--chart shows a failure over time: it needs --transient")
    if chart is not None and chart.suffix.lower() not in charts.COURSE_FORMATS:
        fail(2, f"{chart} is none of {', '.join(charts.COURSE_FORMATS)}")
    try:
        configuration = read_configuration(config, settings)
    except BadQuestion as error:
        fail(2, str(error))
    predictor = predictor_of(settings, calibration)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("simulating", total=None)
        try:
            if transient:
                seen = simulated_transient(predictor, configuration, Scenario(seed, second_hub, takeover))
            else:
                steady = simulated_steadily(
                    predictor, configuration, seed=seed, runs=runs, messages=messages, variation=variation,
                    progress=lambda done, of: progress.update(task, completed=done, total=of),
                )  # fmt: skip
        except (BadNetwork, NotSimulated) as error:
            fail(2, str(error))
    if transient:
        if chart is not None:
            charts.courses(chart, seen)
        _tell_transient(seen, chart, as_json)
    elif as_json:
        print(json.dumps(steady.told(), indent=1))
    else:
        _tell_steady(steady)


def _tell_steady(steady: Steady) -> None:
    said = steady.told()
    if "unstable" in said:
        unstable, offered = said["unstable"], said["offered_rate_msgs_per_s"]
        out.print(
            f"unstable: of {offered:.4g} msgs/s offered {unstable['served_msgs_per_s']:.4g} are served; the "
            f"backlog grows by {unstable['growth_msgs_per_s']:.4g} messages a second",
            style="yellow", highlight=False,
        )  # fmt: skip
        return
    grid = Grid("", "formula", "simulated", "95% from", "to", "gap", box=SIMPLE_HEAD, pad_edge=False)
    for name, value in said["simulated"].items():
        if name == "utilisation":
            grid.add_section()
            for station, busy in value.items():
                grid.add_row(
                    f"{station}, busy", "", *(_percent(busy[end]) for end in ("value", "lo95", "hi95")), ""
                )
            continue
        formula, gap = said["formula"].get(name), said["gap_pct"].get(name)
        grid.add_row(
            name,
            "" if formula is None else f"{formula:.4g}",
            *(f"{value[end]:.4g}" for end in ("value", "lo95", "hi95")),
            "" if gap is None else f"{gap:+.1f}%",
        )
    out.print(grid)
    out.print(
        f"{said['runs']} runs of {said['messages_per_run']} messages, {100 * said['warm_up_share']:.1f}% of "
        f"them left out as warm-up; the formula is limited by {said['formula']['bottleneck']}",
        highlight=False,
    )  # fmt: skip
    if not said["settled"]:
        err.print("not every run has settled: give it more --messages", style="yellow")


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}%"


def _tell_transient(seen: Transient, chart: Path | None, as_json: bool) -> None:
    if as_json:
        said = {
            "title": seen.title,
            "metrics": dict(seen.metrics),
            "verdict": seen.verdict,
            "marks": [{"time_s": time, "what": what} for time, what in sorted(seen.marks)],
            "since": seen.since,
            "time_s": seen.time.tolist(),
            "courses": [
                {"name": one.name, "unit": one.unit, "values": [_number(value) for value in one.values]}
                for one in seen.courses
            ],
        }
        print(json.dumps(said))
        return
    heads = [f"{one.name}, {one.unit}" if one.unit else one.name for one in seen.courses]
    grid = Grid(
        "seconds", *heads, "", title=seen.title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )
    shown = np.unique(np.linspace(0, len(seen.time) - 1, _SHOWN).round().astype(int))
    marks = sorted(seen.marks)
    for place, following in zip(shown, [*shown[1:], len(seen.time)], strict=True):
        end = seen.time[following] if following < len(seen.time) else np.inf
        here = [what for time, what in marks if seen.time[place] <= time < end]
        values = (one.values[place:following] for one in seen.courses)
        cells = [f"{value:.4g}" if np.isfinite(value) else "" for value in map(_mean, values)]
        grid.add_row(f"{seen.time[place]:.0f}", *cells, ", ".join(here))
    out.print(grid)
    for name, value in seen.metrics.items():
        out.print(f"{name}: {'never' if value is None else f'{value:.4g}'}", highlight=False)
    out.print(seen.verdict, style="bold", highlight=False)
    if chart is not None:
        out.print(f"chart: {chart}", soft_wrap=True)


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _number(value: float) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None
