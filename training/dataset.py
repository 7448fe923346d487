"""What models learn from and are examined on: measured figures for the physics, one row per configuration for
the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from features.lake import Lake
from twin.calibration.observations import Observation, observations_of
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.tables import MEASUREMENTS, TRAINING_SET
from twin.queueing.network import Array

# rows of a source that are held out together
Group = tuple[str, str]


@dataclass(frozen=True)
class Data:
    """`rows` is the training set by configuration_id; `figures` are the measurements that it was made
    from.

    Every figure counts once, of a report or of a harness, old or new. Nothing is weighted by its source: each
    system is fitted on the rows of its own families, so a long table says nothing about what it does not
    measure, and a row far off counts for less whoever measured it. The regressor alone sees all families at
    once, and the hybrid takes it only where it is clearly better.
    """

    rows: pd.DataFrame
    figures: tuple[Observation, ...]
    table_version: int
    fingerprint: str

    @classmethod
    def of(cls, lake: Lake, where: str | None = None) -> Data:
        """The newest training set; `where`, over the measurements, keeps some figures only."""
        written = lake.written(TRAINING_SET)
        figures = [
            one
            for one in observations_of(lake.arrow(MEASUREMENTS, where=where).to_pylist())
            if one.exam_group
        ]
        known = {one.configuration.configuration_id for one in figures}
        rows = lake.pandas(TRAINING_SET, written.version).set_index("configuration_id")
        return cls(rows[rows.index.isin(known)], tuple(figures), written.version, written.fingerprint)

    @cached_property
    def configurations(self) -> dict[str, Configuration]:
        return {one.configuration.configuration_id: one.configuration for one in self.figures}

    @property
    def digest(self) -> str:
        """Identifies the rows and the figures, whatever table version they came in."""
        digest = hashlib.sha256()
        for one in sorted(self.figures, key=lambda figure: figure.figure_id):
            digest.update(
                f"{one.figure_id}|{one.configuration.configuration_id}|{one.metric}|{one.value!r}|"
                f"{one.exam_group}\n".encode()
            )
        return digest.hexdigest()[:16]

    def columns(self, ids: Iterable[str]) -> Columns:
        return Columns.of([self.configurations[one] for one in ids])

    def ids(self, target: str) -> list[str]:
        """Configurations with a measured target."""
        return list(self.rows.index[self.rows[target].notna()])

    def logarithms(self, target: str, ids: Iterable[str]) -> Array:
        found: Array = np.log(self.rows.loc[list(ids), target].to_numpy(float))
        return found

    def groups(self, ids: Iterable[str]) -> list[str]:
        rows = self.rows.loc[list(ids)]
        return list(rows["source_id"] + "/" + rows["exam_group"])

    def without(
        self, ids: Collection[str], groups: Collection[Group] = (), kept: Collection[str] = ()
    ) -> Data:
        """As if these configurations, and whatever else these groups measured, had never been measured; but
        for those that are `kept`."""
        gone = set(ids) - set(kept)
        figures = tuple(
            one
            for one in self.figures
            if one.configuration.configuration_id not in gone
            and (
                (one.source_id, str(one.exam_group)) not in groups
                or one.configuration.configuration_id in kept
            )
        )
        left = {one.configuration.configuration_id for one in figures}
        return replace(self, rows=self.rows[self.rows.index.isin(left)], figures=figures)
