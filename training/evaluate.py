"""The exam: what the predictors say about rows they were not given."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import current_process, get_context
from typing import Any

import numpy as np
import pandas as pd

from training.dataset import Data
from training.hyperparameters import tuned
from training.model import PREDICTORS, TwinModel
from training.nearest import PREDICTOR as NEAREST
from training.splits import Fold
from twin.core.tables import TARGETS
from twin.sources.declarations import reports as published_reports
from twin.systems.registry import BY_FAMILY

# a report with fewer rows does not count in the mean over reports
_FEWEST_ROWS = 30
# the nominal level of the interval that is scored, as the share of rows outside
_OUTSIDE = 0.1


Told = Callable[[int, int], None]


def exam(
    data: Data,
    folds: Iterable[Fold],
    parameters: dict[str, Any] | None,
    told: Told | None = None,
    jobs: int = 0,
) -> pd.DataFrame:
    """Every fold's rows with what each predictor says; everything is fitted anew without the fold, and where
    no `parameters` are given they are searched for without it too."""
    folds = [fold for fold in folds if fold.asked]
    # a worker of Celery's may have no children: one fold after the other there
    jobs = 1 if current_process().daemon else min(jobs or os.cpu_count() or 1, len(folds))
    parts: list[pd.DataFrame] = []
    if jobs <= 1:
        for fold in folds:
            parts.append(_sat(data, parameters, fold))
            if told:
                told(len(parts), len(folds))
        return pd.concat(parts, ignore_index=True)
    # a fresh interpreter: a forked one would share the locks of threads that it does not have
    with ProcessPoolExecutor(
        jobs, get_context("spawn"), initializer=_start, initargs=(data, parameters)
    ) as workers:
        for part in workers.map(_sit, folds):
            parts.append(part)
            if told:
                told(len(parts), len(folds))
    return pd.concat(parts, ignore_index=True)


_STATE: dict[str, Any] = {}


def _start(data: Data, parameters: dict[str, Any] | None) -> None:
    from threadpoolctl import threadpool_limits

    # folds run side by side: threads of their own would only get into each other's way
    _STATE.update(data=data, parameters=parameters, limits=threadpool_limits(1))


def _sit(fold: Fold) -> pd.DataFrame:
    return _sat(_STATE["data"], _STATE["parameters"], fold)


def _sat(data: Data, parameters: dict[str, Any] | None, fold: Fold) -> pd.DataFrame:
    training = fold.training(data)
    parameters = parameters or tuned(training)
    families = {str(data.configurations[one].workload.family) for one in fold.asked}
    model = TwinModel.fit(training, {BY_FAMILY[family].name for family in families}, parameters)
    parts = []
    for target in TARGETS:
        ids = [one for one in fold.asked if pd.notna(data.rows.loc[one, target])]
        if not ids:
            continue
        columns, rows = data.columns(ids), data.rows.loc[ids]
        known = model.nearest.get(target)
        for predictor in PREDICTORS:
            answers = model.answer(columns, target, predictor)
            parts.append(
                pd.DataFrame(
                    {
                        "view": fold.view,
                        "fold": fold.name,
                        "configuration_id": ids,
                        "source_id": rows["source_id"].to_numpy(),
                        "exam_group": rows["exam_group"].to_numpy(),
                        "target": target,
                        "predictor": predictor,
                        "measured": rows[target].to_numpy(float),
                        "value": answers.value,
                        "lo90": answers.lo90,
                        "hi90": answers.hi90,
                        "excuse": answers.excuse,
                        "distance": np.nan if known is None else known.places(columns)[1][:, 0],
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def scores(rows: pd.DataFrame) -> dict[str, Any]:
    """Per target: over the published reports, the mean over them, each source, each further view of one.

    Everybody has the same reports, and harness files of their own: overall figures stay comparable because
    these count under their own name alone. Without any report they are all there is.
    """
    found: dict[str, Any] = {}
    for target, of_target in _scored(rows).groupby("target"):
        main = of_target[of_target["view"] == ""]
        views = {
            f"{source} by {view}": _by_predictor(part)
            for (view, source), part in of_target[of_target["view"] != ""].groupby(["view", "source_id"])
        }
        sources = {str(source): _by_predictor(part) for source, part in main.groupby("source_id")}
        published = set(published_reports()) & set(sources) or set(sources)
        found[str(target)] = {
            "overall": _by_predictor(main[main["source_id"].isin(published)]),
            "macro": _macro([sources[source] for source in sorted(published)]),
            "reports": sources,
        } | ({"views": views} if views else {})
    return found


def _scored(rows: pd.DataFrame) -> pd.DataFrame:
    """With errors; an excuse is scored with the value of the nearest measurement."""
    keys = ["view", "fold", "configuration_id", "target"]
    nearest = rows[rows["predictor"] == NEAREST].set_index(keys)[["value", "lo90", "hi90"]]
    scored = rows.join(nearest, on=keys, rsuffix="_nearest")
    excused = scored["excuse"].notna()
    for name in ("value", "lo90", "hi90"):
        scored[name] = scored[name].where(~excused, scored[f"{name}_nearest"])
    return scored.assign(
        excused=excused,
        ape=(scored["value"] / scored["measured"] - 1).abs() * 100,
        inside=scored["measured"].between(scored["lo90"], scored["hi90"]),
        width=(scored["hi90"] - scored["lo90"]) / scored["value"],
        # width, and ten times by how far a row lies outside, relative to what was measured
        penalty=(
            (scored["hi90"] - scored["lo90"])
            + 2 / _OUTSIDE * (scored["lo90"] - scored["measured"]).clip(lower=0)
            + 2 / _OUTSIDE * (scored["measured"] - scored["hi90"]).clip(lower=0)
        )
        / scored["measured"],
    )


def _by_predictor(scored: pd.DataFrame) -> dict[str, Any]:
    return {name: _summary(scored[scored["predictor"] == name]) for name in PREDICTORS}


def _summary(part: pd.DataFrame) -> dict[str, Any]:
    known = part[part["ape"].notna()]
    answered = known[~known["excused"]]
    return {
        "n": len(part),
        "n_excused": int(part["excused"].sum()),
        "median_ape": _rounded(known["ape"].median()),
        "mape": _rounded(known["ape"].mean()),
        "p90_ape": _rounded(known["ape"].quantile(0.9)),
        "median_ape_answered": _rounded(answered["ape"].median()),
        "mape_answered": _rounded(answered["ape"].mean()),
        # an excuse promises nothing, so only answers are held to their intervals
        "coverage90": _rounded(answered["inside"].mean()),
        "width90": _rounded(answered["width"].median()),
        "interval_score90": _rounded(answered["penalty"].mean()),
    }


def _macro(reports: Iterable[dict[str, Any]]) -> dict[str, Any]:
    large = [one for one in reports if one[NEAREST]["n"] >= _FEWEST_ROWS]
    return {
        name: {"median_ape": _rounded(np.mean([one[name]["median_ape"] for one in large])) if large else None}
        for name in PREDICTORS
    }


def _rounded(value: float) -> float | None:
    return None if pd.isna(value) else round(float(value), 4)
