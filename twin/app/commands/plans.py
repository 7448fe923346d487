"""What-if curves, sizings and advice as a person reads them on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid

from twin.app.advising import Advice, Advised
from twin.app.commands.console import out
from twin.app.commands.printing import cell
from twin.app.examining import Option
from twin.app.exploring import Exploration
from twin.app.sizing import Sizing
from twin.app.telling import utilisation_of, value_of
from twin.core.metrics import METRICS
from twin.core.prediction import Excuse, Prediction

# so many of the cheaper options that do not hold, of the single changes, and of busy resources are told
_CHEAPER, _STEPS, _BUSY = 5, 6, 2
# a terminal that has room for all predictors and busy resources
_WIDE = 110


def print_exploration(explored: Exploration) -> None:
    field = METRICS[explored.metric]
    title = f"{field.description}, {field.unit}" if field.unit else field.description
    grid = Grid(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    first, *others = explored.points[0].answers
    wide = out.width >= _WIDE
    others = others if wide else others[:1]
    for name in explored.points[0].changes:
        # the name of a field may be longer than the terminal has room for
        grid.add_column(name, overflow="fold", min_width=4)
    for name in (first, "90% from", "to", *others, "ms"):
        grid.add_column(name, no_wrap=True)
    for name in ("limited by", "busy") if wide else ("limited by",):
        grid.add_column(name, min_width=len("limited by"))
    for point in explored.points:
        cells = [cell(value) for value in point.changes.values()]
        beside = [_short(value_of(point.answers[name])) for name in others]
        if isinstance(point.answer, Excuse):
            grid.add_row(*cells, "", "", "", *beside, "", "excused")
            continue
        numbers = [_short(value) for value in (point.answer.value, point.answer.lo90, point.answer.hi90)]
        busy = sorted(utilisation_of(point.answer).items(), key=lambda one: -one[1])[:_BUSY]
        told = ", ".join(f"{name} {share:.0%}" for name, share in busy if share >= 0.01)
        limits = [point.answer.bottleneck or "", told] if wide else [point.answer.bottleneck or ""]
        grid.add_row(*cells, *numbers, *beside, _short(point.response_ms), *limits)
    out.print(grid)
    for turn in explored.turns:
        where = "".join(f" ({name} = {cell(value)})" for name, value in turn.others.items())
        said = (
            f"from {turn.field} = {turn.at:g} on, {turn.after} is the limit instead of {turn.before}{where}"
        )
        out.print(said, highlight=False)


def print_sizing(sizing: Sizing) -> None:
    wanted = sizing.wanted
    asked = f"{wanted.target:g} msgs/s at {wanted.confidence:.0%}, nothing over {wanted.ceiling_pct:g}% busy"
    if wanted.one_box_lost:
        asked += ", one box lost"
    holds = "holds" if sizing.asked.holds else f"does not hold: {sizing.asked.reason}"
    if sizing.asked.months is not None:
        holds += f", for {sizing.asked.months:.1f} months at {wanted.growth_pct:g}% a month"
    out.print(
        f"{asked}\nas it stands, on one box ({_money(sizing, sizing.asked.cost)}): {holds}", highlight=False
    )
    if sizing.accepted:
        out.print(_options_grid(sizing))
    else:
        out.print(f"none of {sizing.examined} options holds", style="yellow")
    counts = ", ".join(f"{count} {reason}" for reason, count in sizing.rejected_by.items())
    out.print(f"{sizing.examined} options; rejected: {counts or 'none'}", highlight=False)
    if sizing.dearer:
        out.print(f"{sizing.dearer} dearer ones were not looked at closely", highlight=False)
    for option in _nearly(sizing):
        said = f"  {_told(option.changes, option.boxes)}, {_money(sizing, option.cost)}: {option.reason}"
        out.print(said, highlight=False, soft_wrap=True)
    _print_steps(sizing)


def print_advice(advised: Advised) -> None:
    if advised.bottleneck is None:
        out.print("nothing is known of what limits it", highlight=False)
    else:
        out.print(f"limited by [bold]{advised.bottleneck}[/bold]", highlight=False)
    if not advised.advice:
        out.print("the reports give no remedy that is not in place already", highlight=False)
    for one in advised.advice:
        out.print(f"\n[bold]{one.remedy.name}[/bold]: {_gain(one)}", highlight=False)
        lines = ", ".join(f"{source.source_id} line {source.line}" for source in one.remedy.sources)
        out.print(f"  {one.remedy.says} ({lines})", highlight=False, markup=False)


def _gain(advice: Advice) -> str:
    after = advice.after
    if not isinstance(after, Prediction):
        return f"cannot be told: {advice.excuse}"
    change = ", ".join(f"{name} = {cell(value)}" for name, value in (advice.change or {}).items())
    metric = METRICS[advice.remedy.metric]
    before = advice.before.excuse if isinstance(advice.before, Excuse) else _short(advice.before.value)
    gain = "" if advice.gain_pct is None else f"{advice.gain_pct:+.1f}%, "
    interval = f"90%: {_short(after.lo90)} to {_short(after.hi90)}"
    return f"{gain}{metric.name} {before} to {_short(after.value)} {metric.unit} ({interval}) with {change}"


def _options_grid(sizing: Sizing) -> Grid:
    title = f"the cheapest that hold, in {sizing.currency}"
    grid = Grid(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    growing = ["months"] if sizing.wanted.growth_pct else []
    for name in ("cost", "boxes", "with", "expected", "held", "busiest", *growing):
        grid.add_column(name, no_wrap=name != "with")
    for one in sizing.accepted:
        changes = ", ".join(f"{name} {cell(value)}" for name, value in one.changes.items())
        busiest = "" if one.busiest is None else f"{one.busiest} {one.busiest_pct:.0f}%"
        cells = [
            f"{one.cost:,.0f}",
            str(one.boxes),
            changes,
            _short(one.rate),
            _short(one.sure_rate),
            busiest,
        ]
        grid.add_row(*cells, *([f"{one.months:.1f}"] if one.months is not None else []))
    return grid


def _nearly(sizing: Sizing) -> list[Option]:
    """Of those that are cheaper than the cheapest that holds, the ones that come nearest; last what has no
    rate at all."""
    least = min((one.cost for one in sizing.accepted), default=float("inf"))
    cheaper = [one for one in sizing.rejected if one.cost < least]
    return sorted(cheaper, key=lambda one: -(one.sure_rate or one.rate or 0.0))[:_CHEAPER]


def _print_steps(sizing: Sizing) -> None:
    gaining = [one for one in sizing.steps if one.gain_pct is not None and one.gain_pct >= 0.5]
    if not gaining:
        out.print("no single change makes it faster", highlight=False)
        return
    grid = Grid(
        "change", "expected", "gain", "extra cost", f"gain per 1000 {sizing.currency}",
        title="what a single change buys", title_justify="left", box=SIMPLE_HEAD, pad_edge=False,
    )  # fmt: skip
    for one in gaining[:_STEPS]:
        each = "" if one.gain_pct_per_1000 is None else f"{one.gain_pct_per_1000:.2f}%"
        change = ", ".join(f"{name} = {cell(value)}" for name, value in one.change.items())
        grid.add_row(change, _short(one.rate), f"{one.gain_pct:+.1f}%", _money(sizing, one.extra_cost), each)
    out.print(grid)


def _told(changes: Mapping[str, Any], boxes: int) -> str:
    # changes that make no configuration are on no box
    many = [] if not boxes else ["1 box" if boxes == 1 else f"{boxes} boxes"]
    return ", ".join([*many, *(f"{name} = {cell(value)}" for name, value in changes.items())])


def _money(sizing: Sizing, cost: float) -> str:
    return f"{cost:,.0f} {sizing.currency}"


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
