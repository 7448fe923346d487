"""Charts for files: what-if curves with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twin.core.metrics import METRICS
from twin.core.prediction import Excuse, Prediction

FORMATS = (".png", ".svg", ".pdf")


def curve(path: Path, points: Sequence[tuple[dict[str, Any], Prediction | Excuse]], metric: str) -> None:
    """The first varied field runs along the axis; the others tell the lines apart."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    along, *others = points[0][0]
    lines: dict[str, list[tuple[Any, Prediction]]] = {}
    for changes, answer in points:
        if isinstance(answer, Prediction):
            label = ", ".join(f"{name} = {changes[name]}" for name in others)
            lines.setdefault(label, []).append((changes[along], answer))
    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    for label, line in lines.items():
        numeric = all(isinstance(x, int | float) and not isinstance(x, bool) for x, _ in line)
        xs: list[Any] = [x if numeric else str(x) for x, _ in line]
        values = [answer.value for _, answer in line]
        low, high = [answer.lo90 for _, answer in line], [answer.hi90 for _, answer in line]
        if numeric:
            (drawn,) = axes.plot(xs, values, marker="o", markersize=4, label=label or None)
            axes.fill_between(xs, low, high, alpha=0.15, color=drawn.get_color(), linewidth=0)
            if min(xs) > 0 and max(xs) / min(xs) > 50:
                axes.set_xscale("log")
        else:
            spread = [[v - lo for v, lo in zip(values, low, strict=True)],
                      [hi - v for v, hi in zip(values, high, strict=True)]]  # fmt: skip
            axes.errorbar(xs, values, yerr=spread, fmt="o", capsize=4, label=label or None)
    field = METRICS[metric]
    axes.set_xlabel(along)
    axes.set_ylabel(f"{field.description} [{field.unit}]" if field.unit else field.description)
    axes.set_title("Predicted, with its 90% interval", loc="left", fontsize=10)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if others and lines:
        axes.legend(frameon=False)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
