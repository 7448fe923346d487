"""Commands for planners: what if, how large, what helps."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from twin.app.commands.console import AsJson, err, fail, out
from twin.app.commands.model import CONFIG, CalibrationFile
from twin.core.configuration import Configuration
from twin.core.settings import Settings

if TYPE_CHECKING:
    from twin.app.answering import Twin
    from twin.app.costs import CostModel

_SIMULATED = "simulated"


def whatif(
    config: Annotated[str, typer.Argument(help=CONFIG)],
    vary: Annotated[
        list[str], typer.Option(help="field=a,b,c or field=lo..hi[:n]; may be given several times.")
    ],
    metric: Annotated[str, typer.Option(help="What to predict.")] = "throughput_msgs_per_s",
    chart: Annotated[Path | None, typer.Option(help="Draw the curve into this .png, .svg or .pdf.")] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Play each of them out instead of asking the predictors.")
    ] = False,
    calibration: CalibrationFile = None,
    as_json: AsJson = False,
) -> None:
    """A configuration with some of its fields varied: what every predictor says of each combination, with the
    90% interval of the best, how busy that makes each resource, how long a message takes at the offered rate,
    and where another resource becomes the limit; as a chart with --chart."""
    from twin.app import charts
    from twin.app.asking import BadQuestion, read_configuration, read_variation, varied
    from twin.app.commands.plans import print_exploration
    from twin.app.exploring import explore
    from twin.app.telling import told_exploration
    from twin.core.metrics import METRICS
    from twin.core.prediction import Excuse, Prediction

    settings = Settings.from_environment()
    if metric not in METRICS:
        fail(2, f"{metric!r} is not a metric")
    if chart is not None and chart.suffix.lower() not in charts.FORMATS:
        fail(2, f"{chart} is none of {', '.join(charts.FORMATS)}")
    try:
        combinations = varied(read_configuration(config, settings), [read_variation(one) for one in vary])
    except BadQuestion as error:
        fail(2, str(error))
    twin = _twin(settings, calibration)
    with err.status("simulating") if simulated and err.is_terminal else nullcontext():
        explored = explore(twin, combinations, metric, (_SIMULATED,) if simulated else ())
    answers = [point.answer for point in explored.points]
    if chart is not None and any(isinstance(answer, Prediction) for answer in answers):
        charts.curve(chart, explored)
    if as_json:
        print(json.dumps(told_exploration(explored), indent=1))
        return
    print_exploration(explored)
    for excuse in dict.fromkeys(answer.excuse for answer in answers if isinstance(answer, Excuse)):
        err.print(f"excused: {excuse}", style="yellow", markup=False, soft_wrap=True)
    outside = sum(isinstance(answer, Prediction) and not answer.in_domain for answer in answers)
    if outside:
        err.print(f"{outside} of {len(answers)} lie outside what was measured", style="yellow")
    if chart is not None:
        out.print(f"chart: {chart}", soft_wrap=True)


def size(
    config: Annotated[str | None, typer.Argument(help=CONFIG)] = None,
    target: Annotated[float | None, typer.Option(help="Messages a second that have to be held.")] = None,
    confidence: Annotated[float, typer.Option(help="How sure that has to be, 0.5 to 0.99.")] = 0.9,
    ceiling: Annotated[float, typer.Option(help="How busy a resource may be at that rate, in %.")] = 80.0,
    one_box_lost: Annotated[
        bool, typer.Option("--one-box-lost", help="The rate must be held with one box less.")
    ] = False,
    growth: Annotated[float, typer.Option(help="How fast the load grows, in % a month.")] = 0.0,
    vary: Annotated[
        list[str] | None,
        typer.Option(help="field=a,b,c or field=lo..hi[:n] to try instead of the cost model's options."),
    ] = None,
    boxes: Annotated[str | None, typer.Option(help="Numbers of boxes to try: a,b,c or lo..hi.")] = None,
    costs: Annotated[
        Path | None, typer.Option(help="Your cost model; --show-costs prints the one that ships.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, max=1000, help="How many that hold are listed.")] = 10,
    show_costs: Annotated[bool, typer.Option("--show-costs", help="Print the cost model and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """The cheapest configuration that holds a rate with some confidence, the next ones, and why the others do
    not: too slow, too busy, not sure enough. Also which single change buys most, and when a growing load is
    too much. Exit code 1 if none holds."""
    from pydantic import ValidationError

    from twin.app.asking import BadQuestion, read_configuration
    from twin.app.commands.plans import print_sizing
    from twin.app.costs import shipped_text
    from twin.app.examining import Wanted
    from twin.app.sizing import size as sized
    from twin.app.telling import told_sizing

    if show_costs:
        print(shipped_text(), end="")
        return
    if config is None or target is None:
        fail(2, "CONFIG and --target are needed")
    settings = Settings.from_environment()
    try:
        base = read_configuration(config, settings)
        wanted = Wanted(
            target=target,
            confidence=confidence,
            ceiling_pct=ceiling,
            one_box_lost=one_box_lost,
            growth_pct=growth,
        )
        model = _costs(costs)
        options = _options(base, model, vary or [])
        numbers = model.boxes if boxes is None else _boxes(boxes)
        sizing = sized(_twin(settings, None), base, wanted, options, numbers, model.prices, most)
    except BadQuestion as error:
        fail(2, str(error))
    except ValidationError as error:
        fail(2, "; ".join(f"{one['loc'][0]}: {one['msg']}" for one in error.errors()))
    if as_json:
        print(json.dumps(told_sizing(sizing), indent=1))
    else:
        print_sizing(sizing)
    if not sizing.accepted:
        raise typer.Exit(1)


def advise(
    config: Annotated[str, typer.Argument(help=CONFIG)],
    as_json: AsJson = False,
) -> None:
    """What the reports advise against the bottleneck of a configuration, each with its lines, and what the
    twin says it would bring here."""
    from twin.app.advising import advise as advised
    from twin.app.asking import BadQuestion, read_configuration
    from twin.app.commands.plans import print_advice
    from twin.app.telling import told_advice

    settings = Settings.from_environment()
    try:
        configuration = read_configuration(config, settings)
    except BadQuestion as error:
        fail(2, str(error))
    found = advised(_twin(settings, None), configuration)
    if as_json:
        print(json.dumps(told_advice(found), indent=1))
    else:
        print_advice(found)


def _twin(settings: Settings, calibration: Path | None) -> Twin:
    from pydantic import ValidationError

    from twin.app.answering import twin_of
    from twin.app.calibration import NotCalibrated
    from twin.core.outside import BadInput

    try:
        return twin_of(settings, calibration)
    except NotCalibrated as error:
        fail(1, str(error))
    except (BadInput, ValidationError) as error:
        fail(2, f"{calibration} is not a calibration: {str(error).splitlines()[0]}")


def _costs(file: Path | None) -> CostModel:
    from twin.app.costs import BadCosts, read_costs, shipped_costs

    try:
        return shipped_costs() if file is None else read_costs(file)
    except BadCosts as error:
        fail(2, f"{file} is not a cost model: {error}")


def _options(base: Configuration, model: CostModel, vary: list[str]) -> dict[str, list[object]]:
    from twin.app.asking import BadQuestion, read_variation

    if vary:
        return {one.field: list(one.values) for one in map(read_variation, vary)}
    family = str(base.workload.family)
    if family not in model.options:
        raise BadQuestion(("options", f"the cost model has none for {family}: give --vary"))
    return {name: list(values) for name, values in model.options[family].items()}


def _boxes(text: str) -> list[int]:
    """As a variation of a field of whole numbers."""
    from twin.app.asking import BadQuestion, read_variation

    try:
        found = [int(one) for one in read_variation(f"cpus={text}").values]
    except (ValueError, BadQuestion):
        raise BadQuestion(("boxes", f"{text!r} is not a,b,c or lo..hi")) from None
    if min(found) < 1 or max(found) > 1000:
        raise BadQuestion(("boxes", "1 to 1000"))
    return found
