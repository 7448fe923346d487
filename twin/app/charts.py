"""Charts for files: what-if curves with their intervals, and what happens after a failure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twin.app.asking import is_wide
from twin.app.exploring import Exploration, Point
from twin.app.telling import utilisation_of, value_of
from twin.core.metrics import METRICS
from twin.core.prediction import Prediction

if TYPE_CHECKING:
    from twin.simulation.transient import Transient

FORMATS = (".png", ".svg", ".pdf")
COURSE_FORMATS = (*FORMATS, ".gif")
# a resource that is never busier than this, in %, is left out
_WORTH_DRAWING = 1.0
_FRAMES = 50
_FRAME_DPI = 80
_LABEL = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}


def curve(path: Path, explored: Exploration) -> None:
    """The first varied field runs along the axis; the others tell the lines apart. Where there is one line,
    all predictors are drawn, and below it how busy each resource is."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    along, *others = explored.points[0].changes
    lines: dict[str, list[Point]] = {}
    for point in explored.points:
        if isinstance(point.answer, Prediction):
            label = ", ".join(f"{name} = {point.changes[name]}" for name in others)
            lines.setdefault(label, []).append(point)
    heights = [3, 1.3] if len(lines) == 1 else [1]
    figure, panels = pyplot.subplots(
        len(heights), figsize=(8, 4.5 * sum(heights) / heights[0]), sharex=True, squeeze=False,
        height_ratios=heights, layout="constrained",
    )  # fmt: skip
    axes = panels[0, 0]
    for label, line in lines.items():
        _draw_line(axes, along, line, label or next(iter(line[0].answers)))
    for turn in explored.turns:
        axes.axvline(turn.at, color="0.4", linewidth=0.8, linestyle=":")
        axes.annotate(
            f"{turn.before} → {turn.after}", (turn.at, 0.02), xycoords=("data", "axes fraction"), fontsize=7,
            xytext=(3, 0), textcoords="offset points", rotation=90, bbox=_LABEL,
        )  # fmt: skip
    if len(lines) == 1:
        (line,) = lines.values()
        _draw_others(axes, along, line)
        _draw_use(panels[1, 0], along, line)
    field = METRICS[explored.metric]
    panels[-1, 0].set_xlabel(along)
    axes.set_ylabel(f"{field.description} [{field.unit}]" if field.unit else field.description)
    axes.set_title("Predicted, with its 90% interval", loc="left", fontsize=10)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if any(len(line[0].answers) > 1 for line in lines.values()) or others:
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _draw_line(axes: Any, along: str, line: Sequence[Point], label: str) -> None:
    """What the first predictor says, with its interval."""
    answers = [point.answer for point in line if isinstance(point.answer, Prediction)]
    xs, numeric = _places(along, line)
    values = [answer.value for answer in answers]
    low, high = [answer.lo90 for answer in answers], [answer.hi90 for answer in answers]
    if numeric:
        (drawn,) = axes.plot(xs, values, marker="o", markersize=4, label=label)
        axes.fill_between(xs, low, high, alpha=0.15, color=drawn.get_color(), linewidth=0)
        if is_wide(min(xs), max(xs)):
            axes.set_xscale("log")
    else:
        spread = [[v - lo for v, lo in zip(values, low, strict=True)],
                  [hi - v for v, hi in zip(values, high, strict=True)]]  # fmt: skip
        axes.errorbar(xs, values, yerr=spread, fmt="o", capsize=4, label=label)


def _draw_others(axes: Any, along: str, line: Sequence[Point]) -> None:
    for name in list(line[0].answers)[1:]:
        told = [point for point in line if isinstance(point.answers[name], Prediction)]
        if told:
            values = [value_of(point.answers[name]) for point in told]
            axes.plot(_places(along, told)[0], values, linewidth=1, linestyle="--", label=name)


def _draw_use(axes: Any, along: str, line: Sequence[Point]) -> None:
    use = [utilisation_of(point.answer) for point in line]
    xs, _ = _places(along, line)
    for name in use[0]:
        shares = [100 * busy.get(name, 0.0) for busy in use]
        if max(shares) >= _WORTH_DRAWING:
            axes.plot(xs, shares, marker=".", linewidth=1, label=name)
    axes.set(ylim=(0, 105), ylabel="busy [%]")
    axes.grid(alpha=0.3)
    if axes.lines:
        axes.legend(frameon=False, fontsize=7, ncols=2)


def _places(along: str, line: Sequence[Point]) -> tuple[list[Any], bool]:
    """Where the points stand, and whether that is a number."""
    values = [point.changes[along] for point in line]
    numeric = all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)
    return (values if numeric else [str(one) for one in values]), numeric


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
