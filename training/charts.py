"""An exam as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from training.model import PREDICTORS
from twin.core.prediction import THROUGHPUT

_COLOURS = {"nearest": "#bbbbbb", "regression": "#e08a2e", "analytic": "#4477aa", "hybrid": "#117733"}


def exam_chart(rows: pd.DataFrame, path: Path) -> None:
    """Left: what the hybrid said beside what was measured, with its 90% interval. Right: what share of the
    rows each predictor had within an error."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    asked = rows[(rows["target"] == THROUGHPUT) & (rows["view"] == "")]
    figure, (said, errors) = pyplot.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    hybrid = asked[(asked["predictor"] == "hybrid") & asked["value"].notna()]
    for source, part in hybrid.groupby("source_id"):
        spread = [part["value"] - part["lo90"], part["hi90"] - part["value"]]
        said.errorbar(
            part["measured"], part["value"], yerr=spread, fmt="o", markersize=2.5, linewidth=0.6, alpha=0.6,
            label=f"{source} ({len(part)})",
        )  # fmt: skip
    ends = [hybrid["measured"].min() * 0.8, hybrid["measured"].max() * 1.25] if len(hybrid) else [1, 10]
    said.plot(ends, ends, color="black", linewidth=0.7)
    said.set(xscale="log", yscale="log", xlabel="measured, msgs/s", ylabel="hybrid, held out, msgs/s")
    said.legend(frameon=False, fontsize=7)
    said.set_title("Rows it was not given, with 90% intervals", loc="left", fontsize=10)
    for predictor in PREDICTORS:
        part = asked[(asked["predictor"] == predictor) & asked["value"].notna()]
        ape = np.sort((part["value"] / part["measured"] - 1).abs().to_numpy() * 100)
        if len(ape):
            share = np.arange(1, len(ape) + 1) / len(part) * 100
            errors.plot(np.maximum(ape, 0.05), share, label=predictor, color=_COLOURS[predictor])
    errors.set(xscale="log", xlabel="error of at most, %", ylabel="share of answered rows, %", ylim=(0, 100))
    errors.axhline(50, color="black", linewidth=0.4)
    errors.grid(alpha=0.3)
    errors.legend(frameon=False, fontsize=8, loc="lower right")
    errors.set_title("Errors of the predictors", loc="left", fontsize=10)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
