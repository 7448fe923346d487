"""Tables of the analytic model as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table as Grid

from twin.core.prediction import Excuse, Prediction

if TYPE_CHECKING:
    from twin.calibration.calibrating import Forecast
    from twin.calibration.scores import FamilyScore

_BAR = 24
# so few foretold figures are shown one by one
_FEW = 4


def scores_grid(title: str, scores: Sequence[FamilyScore]) -> Grid:
    grid = Grid(
        "report", "family", "metric", "rows", "parameters", "effective", "MAPE", "median", "points", "",
        title=title, title_justify="left",
    )  # fmt: skip
    for score in scores:
        grid.add_row(
            score.source_id,
            score.family if score.regime is None else f"{score.family}: {score.regime}",
            score.metric,
            str(score.n),
            str(score.parameters),
            f"{score.effective_parameters:.1f}",
            *("" if error is None else f"{error:.1f}%" for error in (score.mape, score.median_ape)),
            "" if score.mean_abs_points is None else f"{score.mean_abs_points:.1f}",
            "interpolation" if score.interpolation else "",
        )
    return grid


def forecasts_grid(foretold: Sequence[Forecast]) -> Grid:
    """Single figures where they are few, else their mean error."""
    groups: dict[tuple[str, str, str], list[Forecast]] = {}
    for one in foretold:
        groups.setdefault((one.system, one.title, one.metric), []).append(one)
    grid = Grid("system", "foretold", "metric", "rows", "measured", "predicted", "MAPE",
                title="Not fitted on, predicted", title_justify="left")  # fmt: skip
    for (system, title, metric), rows in groups.items():
        mape = sum(abs(one.predicted / one.value - 1) for one in rows if one.value) / len(rows)
        few = len(rows) <= _FEW
        grid.add_row(
            system,
            title,
            metric,
            str(len(rows)),
            ", ".join(f"{one.value:g}" for one in rows) if few else "",
            ", ".join(f"{one.predicted:.4g}" for one in rows) if few else "",
            f"{100 * mape:.1f}%",
        )
    return grid


def points_grid(points: Sequence[tuple[dict[str, Any], Prediction | Excuse]], metric: str) -> Grid:
    highest = max((answer.value for _, answer in points if isinstance(answer, Prediction)), default=0.0)
    grid = Grid(*points[0][0], metric, "90% interval", "limited by", "")
    for changes, answer in points:
        cells = [cell(value) for value in changes.values()]
        if isinstance(answer, Excuse):
            grid.add_row(*cells, "", "", "", answer.excuse)
            continue
        bar = "█" * round(_BAR * answer.value / highest) if highest else ""
        interval = f"{answer.lo90:.4g} to {answer.hi90:.4g}"
        grid.add_row(*cells, f"{answer.value:.4g}", interval, answer.bottleneck or "", bar)
    return grid


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
