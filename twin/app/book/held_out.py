"""Who says what of each figure without having seen it: the champion in its exam, the physics in folds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from training.model import HYBRID
from twin.app.book.figures import RESULTS, Answer
from twin.calibration.calibrating import fitted_rows
from twin.calibration.calibration import fitted_on
from twin.calibration.holding_out import HeldOut, Told, held_out
from twin.calibration.observations import observations_of
from twin.calibration.predictor import PREDICTOR as ANALYTIC
from twin.core.configuration import Configuration
from twin.core.fields import fields_of
from twin.core.prediction import THROUGHPUT
from twin.core.settings import Settings
from twin.core.tables import TARGETS

SHOWN = (ANALYTIC, HYBRID)
_SETTINGS = tuple(field.name for field in fields_of(Configuration))
_NOT_EXAMINED = "not a row of the champion's exam"
# a hub is two equal boxes, and the figures of its configuration are those of one
_BOXES_OF_A_HUB = 2

Measured = Mapping[str, Any]


def settings_of(row: Measured) -> dict[str, Any]:
    return {name: row[name] for name in _SETTINGS if row.get(name) is not None}


class Answers:
    """By configuration and metric."""

    def __init__(self, physics: Iterable[HeldOut], exam: pd.DataFrame | None) -> None:
        self._physics = {
            (one.configuration_id, one.metric): Answer(one.value, one.lo90, one.hi90, one.excuse)
            for one in physics
        }
        self._exam = {} if exam is None else _examined(exam)

    def of(self, row: Measured) -> dict[str, Answer]:
        """The exam where it has the figure's configuration; else the physics alone. What an exam is asked is
        turned into what the report prints."""
        if row["configuration_id"] is None or row["fact_kind"] not in RESULTS:
            return {}
        one, metric = str(row["configuration_id"]), str(row["metric"])
        target, convert = _asked_for(metric, row)
        found = {
            predictor: self._exam[one, target, predictor].as_(convert)
            for predictor in SHOWN
            if (one, target, predictor) in self._exam
        }
        physics = self._foretold(one, metric, target, convert)
        if physics is not None:
            found.setdefault(ANALYTIC, physics)
        if self._exam and target in TARGETS:
            found.setdefault(HYBRID, Answer(excuse=_NOT_EXAMINED))
        return found

    def _foretold(
        self, one: str, metric: str, target: str, convert: Callable[[float], float]
    ) -> Answer | None:
        direct, follows = self._physics.get((one, metric)), self._physics.get((one, target))
        if (direct is None or direct.value is None) and follows is not None and follows.value is not None:
            return follows.as_(convert)
        return direct


def is_learned(metric: str) -> bool:
    """Whether the hybrid is asked for it, or for something that it follows from."""
    return _asked_for(metric, {"queue_managers": 1})[0] in TARGETS


def physics_held_out(
    settings: Settings, trusted: Sequence[Measured], all_figures: Sequence[Measured], code: str, told: Told
) -> list[HeldOut]:
    """Of every figure that has a configuration, those in quarantine too; fitted on the trusted ones. The same
    folds of the same figures by the same code are fitted once."""
    import pyarrow as pa
    from pyarrow import parquet
    from threadpoolctl import threadpool_limits

    observed = observations_of(trusted)
    questions = _questions(all_figures)
    parts = [
        code,
        *sorted(fitted_on(one) for one in fitted_rows(observed)),
        *(f"{one}/{metric}" for one, metric in sorted(questions)),
    ]
    key = hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]
    kept = settings.home / "backtests" / f"physics-{key}.parquet"
    if kept.is_file():
        return [HeldOut.model_validate(row) for row in parquet.read_table(kept).to_pylist()]
    # small matrices, perhaps beside a training: threads would only get into each other's way
    with threadpool_limits(1):
        found = held_out(observed, [(one, metric) for (_, metric), one in questions.items()], told)
    kept.parent.mkdir(parents=True, exist_ok=True)
    draft = kept.with_name(f".{kept.name}")
    parquet.write_table(pa.Table.from_pylist([one.model_dump() for one in found]), draft)
    draft.replace(kept)
    return found


def _questions(rows: Iterable[Measured]) -> dict[tuple[str, str], Configuration]:
    known: dict[str, Configuration] = {}
    found = {}
    for row in rows:
        one = row["configuration_id"]
        if one is None or row["fact_kind"] not in RESULTS:
            continue
        if one not in known:
            known[one] = Configuration.from_flat(settings_of(row))
        for metric in {row["metric"], _asked_for(row["metric"], row)[0]}:
            found[one, metric] = known[one]
    return found


def _asked_for(metric: str, row: Measured) -> tuple[str, Callable[[float], float]]:
    """The metric that predictors answer, and how the printed one follows from it."""
    match metric:
        case "elapsed_ms":
            return THROUGHPUT, lambda rate: 1000 / rate
        case "queue_manager_throughput_msgs_per_s" if row["queue_managers"] is not None:
            queue_managers = row["queue_managers"]
            return THROUGHPUT, lambda rate: rate / queue_managers
        case "hub_throughput_msgs_per_s":
            return THROUGHPUT, lambda rate: rate * _BOXES_OF_A_HUB
    return metric, lambda value: value


def _examined(exam: pd.DataFrame) -> dict[tuple[str, str, str], Answer]:
    rows = exam[(exam["view"] == "") & exam["predictor"].isin(SHOWN)]
    return {
        (row["configuration_id"], row["target"], row["predictor"]): Answer(excuse=row["excuse"])
        if isinstance(row["excuse"], str)
        else Answer(row["value"], row["lo90"], row["hi90"])
        for row in rows.to_dict("records")
    }
