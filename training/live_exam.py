"""The exam on live data: from a third of a grid the twin predicts the rest.

Which third is measured is decided before anything is: where the physics, at what was believed before, would
learn most (`probing.py`). A prediction is compared with the median over the repeats, which has an error of
its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import pandas as pd

from training.dataset import Data
from training.model import HYBRID, TwinModel
from training.probing import least_sure
from twin.calibration.observations import Observation
from twin.core.prediction import THROUGHPUT, Excuse, Prediction
from twin.core.tables import TARGETS
from twin.harness.measured import Measured
from twin.systems.registry import BY_FAMILY

_SHARE = 1 / 3
# what the twin is held to, in percent: the median error, unless the median's own error is greater; and any
MEDIAN_AT_MOST, ANY_AT_MOST = 10.0, 20.0
_TIMES_OWN_ERROR = 1.5


@dataclass(frozen=True)
class Answered:
    """A point that was not learned from."""

    point: Measured
    answer: Prediction | Excuse

    @property
    def error_pct(self) -> float | None:
        if isinstance(self.answer, Excuse):
            return None
        return 100 * abs(self.answer.value / self.point.rate - 1)

    @property
    def own_error_pct(self) -> float:
        """Of the median over the repeats."""
        return 100 * (self.point.error_of_the_median or 0.0)


@dataclass(frozen=True)
class Paper:
    """Of one experiment on one broker; what waits for a disk is told apart, as its runs scatter more."""

    experiment: str
    product: str
    persistent: bool
    learned: int
    answers: Sequence[Answered]

    @property
    def errors(self) -> list[float]:
        return [one.error_pct for one in self.answers if one.error_pct is not None]

    @property
    def allowed_pct(self) -> float:
        own = median(one.own_error_pct for one in self.answers)
        return max(MEDIAN_AT_MOST, _TIMES_OWN_ERROR * own)

    @property
    def passed(self) -> bool:
        errors = self.errors
        return len(errors) == len(self.answers) and (
            median(errors) <= self.allowed_pct and max(errors) <= ANY_AT_MOST
        )


def live_exam(points: Sequence[Measured], predictor: str = HYBRID) -> list[Paper]:
    learned = _learned(points)
    model = TwinModel.fit(data_of([points[at] for at in sorted(learned)]))
    asked = [point for at, point in enumerate(points) if at not in learned]
    answers = model.predict([one.configuration for one in asked], THROUGHPUT, predictor)
    papers: dict[tuple[str, str, bool], list[Answered]] = {}
    for point, answer in zip(asked, answers, strict=True):
        papers.setdefault(_paper(point), []).append(Answered(point, answer))
    known = [_paper(points[at]) for at in learned]
    return [Paper(*key, known.count(key), found) for key, found in papers.items()]


def _paper(point: Measured) -> tuple[str, str, bool]:
    asked = point.configuration
    return point.experiment, asked.software.product, bool(asked.flat()["persistent"])


def _learned(points: Sequence[Measured]) -> set[int]:
    """A third of each grid at most; what is chosen of one grid is known when the next has its turn."""
    chosen: list[int] = []
    for grid in sorted({_paper(point)[:2] for point in points}):
        mine = [at for at, point in enumerate(points) if _paper(point)[:2] == grid]
        candidates = [points[at].configuration for at in mine]
        system = BY_FAMILY[str(candidates[0].workload.family)]
        known = [
            one
            for at in chosen
            if (one := points[at].configuration).workload.family in system.families
        ]  # fmt: skip
        count = int(len(mine) * _SHARE)
        chosen += [mine[place] for place in least_sure(system, None, candidates, count, known)]
    return set(chosen)


def data_of(points: Sequence[Measured]) -> Data:
    """Medians over the repeats, as if they stood in the tables."""
    figures, rows = [], []
    for at, point in enumerate(points):
        values = {metric: float(np.median(found)) for metric, found in point.figures.items() if len(found)}
        identity, group = point.configuration.configuration_id, point.experiment
        source = f"live-{point.configuration.software.product}"
        for metric, value in values.items():
            noise = (point.error_of_the_median or 0.0) if metric == THROUGHPUT else 0.0
            figures.append(
                Observation(f"live:{at}:{metric}", source, point.configuration, metric, value, group, noise)
            )
        rows.append(
            {"configuration_id": identity, "source_id": source, "exam_group": group}
            | {target: values.get(target, np.nan) for target in TARGETS}
        )
    return Data(pd.DataFrame(rows).set_index("configuration_id"), tuple(figures), 0, "live")
