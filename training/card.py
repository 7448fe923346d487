"""The model card: what a model is made of, how well it does, what it does not know."""

from __future__ import annotations

from typing import Any

from training.dataset import Data
from training.model import PREDICTORS, TwinModel

_FIGURES = ("n", "n_excused", "median_ape", "mape", "p90_ape", "coverage90", "width90")


def model_card(
    data: Data,
    model: TwinModel,
    scores: dict[str, Any],
    parameters: dict[str, Any],
    expectations: str,
    code_version: str,
) -> str:
    sources = data.rows.groupby("source_id").size()
    lines = [
        "# throughput",
        "",
        "Predicts the throughput of message-broker configurations and their processor time per message, with "
        "50% and 90% intervals, or says why it cannot. Physics with fitted demands, corrected by a Gaussian "
        "process on what it leaves over; a gradient-boosted regressor and the nearest measurement stand "
        "beside it.",
        "",
        "## Made of",
        "",
        f"- training set version {data.table_version}, {len(data.rows)} configurations: "
        + ", ".join(f"{source} {count}" for source, count in sources.items()),
        f"- {len(data.figures)} measured figures, digest {data.digest}; expectations: {expectations}",
        f"- code {code_version}; regressor: " + ", ".join(f"{k} {v}" for k, v in parameters.items()),
        "",
        "## Exam: configurations it had not seen, of tables it knows",
        "",
        "Errors in percent; an excuse is scored with the value of the nearest measurement.",
    ]
    for target, of_target in scores.items():
        lines += ["", f"### {target}", "", "| rows of | predictor | " + " | ".join(_FIGURES) + " |"]
        lines.append("|---" * (len(_FIGURES) + 2) + "|")
        for name, figures in {"all": of_target["overall"], **of_target["reports"]}.items():
            for predictor in PREDICTORS:
                cells = [_cell(figures[predictor][figure]) for figure in _FIGURES]
                lines.append(f"| {name} | {predictor} | " + " | ".join(cells) + " |")
    lines += ["", "## Weight of the regressor in the hybrid", ""]
    lines += [
        f"- {system}, {target}: {correction.regression_weight:.2f}"
        for (system, target), correction in model.corrections.items()
        if correction.residual is not None
    ]
    lines += [
        "",
        "## Where it is weak",
        "",
        "- A kind of thing that no row contains is excused, and so is a size far beyond the measured ones.",
        "- Machines that were never measured are reached by ratings; the interval shows the doubt of that.",
        "- One kind of flow was measured in parallel; whole-machine maxima of cheap flows come out high.",
        "- The z/OS report prints costs, not rates: its rates follow from physics alone.",
    ]
    return "\n".join(lines) + "\n"


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
