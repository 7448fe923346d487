"""Tables of the analytic model as a person reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table as Grid

from twin.app.commands.console import out
from twin.core.metrics import METRICS
from twin.core.prediction import Excuse, Prediction

if TYPE_CHECKING:
    from twin.calibration.calibrating import Forecast
    from twin.calibration.scores import FamilyScore

# so few foretold figures are shown one by one
_FEW = 4


def scores_grids(scores: Sequence[FamilyScore]) -> Iterator[Grid]:
    """A table per report: parameters that matter and, after the stroke, how many the rows decide."""
    for source_id in dict.fromkeys(score.source_id for score in scores):
        grid = Grid("family", "metric", "rows", "parameters", "error", title=source_id, title_justify="left")
        for score in scores:
            if score.source_id != source_id:
                continue
            if score.mean_abs_points is not None:
                error = f"{score.mean_abs_points:.1f} points"
            else:
                error = f"{score.mape:.2f}%, median {score.median_ape:.2f}%"
            grid.add_row(
                score.family if score.regime is None else f"{score.family}, {score.regime}",
                score.metric,
                str(score.n),
                f"{score.parameters} / {score.effective_parameters:.1f}",
                error + (" (interpolation)" if score.interpolation else ""),
            )
        yield grid


def forecasts_grid(foretold: Sequence[Forecast]) -> Grid:
    """Single figures where they are few, else their mean error."""
    groups: dict[tuple[str, str, str], list[Forecast]] = {}
    for one in foretold:
        groups.setdefault((one.system, one.title, one.metric), []).append(one)
    grid = Grid(
        "foretold", "metric", "rows", "measured", "predicted", "error",
        title="Not fitted on, predicted", title_justify="left",
    )  # fmt: skip
    for (system, title, metric), rows in groups.items():
        few = len(rows) <= _FEW
        grid.add_row(
            f"{system}: {title}",
            metric,
            str(len(rows)),
            ", ".join(f"{one.value:g}" for one in rows) if few else "",
            ", ".join(f"{one.predicted:.4g}" for one in rows) if few else "",
            _mean_error(metric, rows),
        )
    return grid


def _mean_error(metric: str, rows: Sequence[Forecast]) -> str:
    if METRICS[metric].unit == "%":
        return f"{fmean(abs(one.predicted - one.value) for one in rows):.1f} points"
    return f"{100 * fmean(abs(one.predicted / one.value - 1) for one in rows):.1f}%"


def cell(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def told(answer: Prediction | Excuse | None) -> str:
    if isinstance(answer, Prediction):
        return f"{answer.value:.4g} ({answer.lo90:.4g} to {answer.hi90:.4g})"
    return ""


def ratio_of(one: Prediction | Excuse | None, other: Prediction | Excuse | None) -> float | None:
    if isinstance(one, Prediction) and isinstance(other, Prediction) and one.value:
        return other.value / one.value
    return None


def print_explanation(told: dict[str, Any]) -> None:
    answer = told["answer"]
    if answer.get("excuse"):
        out.print(f"no answer: {answer['excuse']}", highlight=False, markup=False)
    else:
        said = f"{answer['value']:.4g} (50%: {answer['lo50']:.4g} to {answer['hi50']:.4g}, "
        said += f"90%: {answer['lo90']:.4g} to {answer['hi90']:.4g})"
        out.print(f"{answer['target']}: [bold]{said}[/bold]", highlight=False)
        out.print(f"limited by {answer['bottleneck']}; busy: {answer['utilisation']}", highlight=False)
        if not answer["in_domain"]:
            out.print(
                f"outside what was measured: {answer['domain_reason']}", style="yellow", highlight=False
            )
    grid = Grid("predictor", "says", "90% from", "to", box=SIMPLE_HEAD, pad_edge=False)
    for name, one in told["predictors"].items():
        if one.get("excuse"):
            grid.add_row(name, one["excuse"], "", "")
        else:
            grid.add_row(name, *(f"{one[end]:.4g}" for end in ("value", "lo90", "hi90")))
    out.print(grid)
    if told["correction"] is not None:
        out.print(f"experience with similar configurations multiplies physics by {told['correction']:.3f}")
    if told["contributions"]:
        grid = Grid("demand", "1% more of it moves the answer by", box=SIMPLE_HEAD, pad_edge=False)
        for name, slope in told["contributions"].items():
            grid.add_row(escape(name), f"{slope:+.2f}%")
        out.print(grid)
    for one in told["neighbours"]:
        differs = ", ".join(f"{name} = {cell(value)}" for name, value in one["differs"].items())
        out.print(f"measured nearby, with {differs or 'the same columns'}:", highlight=False, soft_wrap=True)
        for figure in one["figures"]:
            where = f"{figure['source_id']} line {figure['line']}, {figure['table_label']}"
            out.print(f"  {figure['metric']} {figure['printed']} ({where})", highlight=False, soft_wrap=True)
