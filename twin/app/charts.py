"""Charts for files: what-if curves with their intervals, and what happens after a failure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twin.core.metrics import METRICS
from twin.core.prediction import Excuse, Prediction

if TYPE_CHECKING:
    from twin.simulation.transient import Transient

FORMATS = (".png", ".svg", ".pdf")
COURSE_FORMATS = (*FORMATS, ".gif")
_FRAMES = 50
_FRAME_DPI = 80
_LABEL = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}


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


def courses(path: Path, seen: Transient) -> None:
    """One course under the other over the same seconds, with the moments that matter; a .gif draws them as
    time goes by."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        len(seen.courses), figsize=(8, 1.9 * len(seen.courses) + 0.6), sharex=True, layout="constrained"
    )
    lines = []
    for at, (axis, course) in enumerate(zip(axes, seen.courses, strict=True)):
        lines += axis.plot(seen.time, course.values, linewidth=1.2, color=f"C{at}")
        axis.set_title(
            f"{course.name}, {course.unit}" if course.unit else course.name, loc="left", fontsize=9
        )
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        for time, _ in seen.marks:
            axis.axvline(time, color="0.4", linewidth=0.8, linestyle="--")
    for number, (time, what) in enumerate(sorted(seen.marks)):
        # neighbours may be near each other: every second label stands lower
        axes[0].annotate(
            what, (time, (0.9, 0.7)[number % 2]), xycoords=("data", "axes fraction"), fontsize=8,
            xytext=(3, 0), textcoords="offset points", bbox=_LABEL,
        )  # fmt: skip
    axes[-1].set_xlabel(f"seconds since {seen.since}")
    figure.suptitle(f"{seen.title}\n{seen.verdict}", fontsize=10)
    if path.suffix.lower() == ".gif":
        _animate(path, figure, lines)
    else:
        figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _animate(path: Path, figure: Any, lines: Sequence[Any]) -> None:
    """The chart without its lines, of which each frame uncovers a little more: that is two drawings, not one
    for each frame."""
    from PIL import Image

    figure.set_dpi(_FRAME_DPI)

    def drawn() -> Any:
        figure.canvas.draw()
        return Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")

    whole = drawn()
    for line in lines:
        line.set_visible(False)
    empty = drawn()
    extent = lines[0].axes.get_window_extent()
    frames = []
    for frame in range(1, _FRAMES + 1):
        uncovered = (0, 0, int(extent.x0 + extent.width * frame / _FRAMES), whole.height)
        frames.append(empty.copy())
        frames[-1].paste(whole.crop(uncovered))
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=100, loop=0)
