"""Commands that ask the analytic model: how well it fits, which of two."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as Grid

from twin.app.commands.console import AsJson, err, fail, out
from twin.app.commands.printing import cell, forecasts_grid, ratio_of, scores_grids, told
from twin.core.prediction import Excuse, Prediction
from twin.core.settings import Settings

if TYPE_CHECKING:
    from twin.calibration.observations import Observation
    from twin.calibration.predictor import AnalyticPredictor
    from twin.calibration.scores import FamilyScore

CONFIG = "A flat YAML or JSON file (`twin example` makes one), or a configuration_id."
CalibrationFile = Annotated[
    Path | None, typer.Option(help="Demands from this file, which `twin calibrate --out` wrote.")
]


def calibrate(
    where: Annotated[
        str | None, typer.Option(help="SQL predicate over the measurements to fit on; all by default.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--out", help="Keep the fitted demands in this JSON file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit the analytic model's demands on the measurements and tell how well it explains them, per report and
    family. The lake's own calibration, which answers questions, is fitted when data is ingested."""
    from twin.app.calibration import write_calibrations
    from twin.calibration.calibrating import coverage, fit_all, forecasts
    from twin.calibration.calibration import calibration_of
    from twin.calibration.predictor import AnalyticPredictor
    from twin.calibration.scores import family_scores, regime_scores

    observed = _measurements(where)
    with err.status("fitting") if err.is_terminal else nullcontext() as status:
        fits = fit_all(
            observed, (lambda name: status.update(f"fitting {name}")) if status else lambda _: None
        )
        if not fits:
            fail(2, "no measurement that the model explains matches")
        calibrations = [calibration_of(one) for one in fits]
        foretold = forecasts(fits, observed)
        covered = coverage(AnalyticPredictor({one.system: one for one in calibrations}), observed)
    families = [score for one in fits for score in family_scores(one)]
    regimes = [score for one in fits for score in regime_scores(one)]
    if file is not None:
        write_calibrations(file, calibrations)
    if as_json:
        said = {
            "families": [_score_as_json(score) for score in families],
            "regimes": [_score_as_json(score) | {"regime": score.regime} for score in regimes],
            "forecasts": [one.model_dump() for one in foretold],
            "coverage": covered.model_dump(),
        }
        print(json.dumps(said, indent=1))
        return
    told_apart = [score for score in regimes if not score.interpolation]
    for grid in (*scores_grids(families), *scores_grids(told_apart)):
        out.print(grid)
    if foretold:
        out.print(forecasts_grid(foretold))
    share = 100 * covered.predicted / max(covered.figures, 1)
    out.print(
        f"{covered.predicted} of {covered.figures} measured rates, times and processor figures "
        f"have a prediction ({share:.1f}%)."
    )
    for figure_id, excuse in covered.excuses.items():
        out.print(f"  {figure_id}: {excuse}", highlight=False, markup=False)


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help=CONFIG)],
    second: Annotated[str, typer.Argument(metavar="B", help=CONFIG)],
    calibration: CalibrationFile = None,
    as_json: AsJson = False,
) -> None:
    """Two configurations side by side: where they differ, and every metric that the model tells of them."""
    from twin.app.asking import BadQuestion, read_configuration

    settings = Settings.from_environment()
    try:
        a, b = (read_configuration(text, settings) for text in (first, second))
    except BadQuestion as error:
        fail(2, str(error))
    predictor = predictor_of(settings, calibration)
    left, right = predictor.metrics(a), predictor.metrics(b)
    names = sorted(a.flat().keys() | b.flat().keys())
    differences = {
        name: (a.flat().get(name), b.flat().get(name))
        for name in names
        if a.flat().get(name) != b.flat().get(name)
    }
    metrics = {
        name: (left.get(name), right.get(name))
        for name in dict.fromkeys((*left, *right))
        if any(isinstance(side.get(name), Prediction) for side in (left, right))
    }
    if as_json:
        said = {
            "differences": differences,
            "metrics": {
                name: {
                    "a": one.model_dump() if one else None,
                    "b": other.model_dump() if other else None,
                    "ratio": ratio_of(one, other),
                }
                for name, (one, other) in metrics.items()
            },
        }
        print(json.dumps(said, indent=1))
        return
    grid = Grid("", "A", "B", "B / A", title="Differences and predictions", title_justify="left")
    for name, (one, other) in differences.items():
        grid.add_row(name, cell(one), cell(other), "")
    grid.add_section()
    for name, (one, other) in metrics.items():
        ratio = ratio_of(one, other)
        grid.add_row(name, told(one), told(other), "" if ratio is None else f"{ratio:.2f}")
    limits = [
        next((p.bottleneck for p in side.values() if isinstance(p, Prediction)), None)
        for side in (left, right)
    ]
    grid.add_row("limited by", *(limit or "" for limit in limits), "")
    out.print(grid)
    for label, side in (("A", left), ("B", right)):
        for excuse in dict.fromkeys(one.excuse for one in side.values() if isinstance(one, Excuse)):
            out.print(f"{label}: {excuse}", highlight=False, markup=False)


def _measurements(where: str | None) -> list[Observation]:
    from features.lake import Lake, NoSuchTable
    from features.predicates import BadPredicate
    from twin.calibration.observations import observations_of
    from twin.core.tables import MEASUREMENTS

    try:
        rows = Lake(Settings.from_environment()).arrow(MEASUREMENTS, where=where)
    except BadPredicate as error:
        fail(2, str(error))
    except NoSuchTable:
        fail(1, "there are no measurements yet: run `make run` or `twin ingest`")
    return observations_of(rows.to_pylist())


def predictor_of(settings: Settings, file: Path | None) -> AnalyticPredictor:
    from pydantic import ValidationError

    from twin.app.calibration import NotCalibrated, analytic_predictor
    from twin.core.outside import BadInput

    try:
        return analytic_predictor(settings, file)
    except NotCalibrated as error:
        fail(1, str(error))
    except (BadInput, ValidationError) as error:
        fail(2, f"{file} is not a calibration: {str(error).splitlines()[0]}")


def _score_as_json(score: FamilyScore) -> dict[str, Any]:
    return score.model_dump(exclude={"regime"}) | {"interpolation": score.interpolation}
