"""An exam on the newest tables, kept in MLflow."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from features.lake import Lake
from training.backtest import Exam, examined
from training.charts import exam_chart
from training.dataset import Data
from training.evaluate import Told
from training.hyperparameters import shipped
from training.registry import Registry, metrics_of
from training.training import code_version
from twin.core.settings import Settings
from twin.core.tables import MEASUREMENTS


class NothingHeldOut(Exception):
    """The predicate matches no measured configuration that could be predicted."""


def run_backtest(
    settings: Settings,
    protocol: str | None,
    where: str | None,
    chart: Path | None = None,
    told: Told | None = None,
) -> Exam:
    """By a protocol, or with the configurations that match a predicate held out together."""
    lake = Lake(settings)
    data = Data.of(lake)
    held = None
    if where is not None:
        matching = lake.arrow(MEASUREMENTS, where=where)["configuration_id"].to_pylist()
        held = set(matching) & set(data.rows.index)
        if not held:
            raise NothingHeldOut(f"{where!r} matches no configuration of the training set")
        if held == set(data.rows.index):
            raise NothingHeldOut(f"{where!r} matches every configuration: nothing is left to learn from")
    exam = examined(settings, data, protocol or "hold-out", shipped(), code_version(), held, told)
    with tempfile.TemporaryDirectory() as folder:
        picture, scores = Path(folder) / f"{exam.protocol}.png", Path(folder) / f"{exam.protocol}.json"
        exam_chart(exam.rows, picture)
        scores.write_text(json.dumps(exam.scores, indent=1))
        Registry(settings).log_exam(f"backtest {exam.protocol}", metrics_of(exam.scores), [picture, scores])
    if chart is not None:
        exam_chart(exam.rows, chart)
    return exam
