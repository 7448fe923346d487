"""Every predictor by its name, made when it is asked for: loading a model takes seconds."""

from __future__ import annotations

from collections.abc import Callable

from twin.core.prediction import Predictor
from twin.core.settings import Settings


def _regression(settings: Settings) -> Predictor:
    from training.registry import RegisteredPredictor

    return RegisteredPredictor(settings)


def _analytic(settings: Settings) -> Predictor:
    from twin.app.calibration import analytic_predictor

    return analytic_predictor(settings)


PREDICTORS: dict[str, Callable[[Settings], Predictor]] = {"regression": _regression, "analytic": _analytic}
