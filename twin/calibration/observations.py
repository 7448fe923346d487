"""The measurements that a system is fitted on."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from twin.core.columns import Columns
from twin.core.configuration import Configuration, Platform
from twin.core.fields import fields_of
from twin.queueing.network import Array
from twin.systems.model import Batch, System
from twin.systems.transfer import is_rated, transfer

Places = npt.NDArray[np.int64]
_COLUMNS = tuple(field.name for field in fields_of(Configuration))
# in the name of a source, before the number of its epoch: a live broker has changed since the one before
EPOCH = "-epoch-"


@dataclass(frozen=True)
class Observation:
    """A measured figure."""

    figure_id: str
    source_id: str
    configuration: Configuration
    metric: str
    value: float
    # rows of a source that are held out together; a row without one is never fitted on
    exam_group: str | None = None
    # standard deviation of the value itself, in its target's scale, where repeats tell it
    noise: float = 0.0

    @property
    def family(self) -> str:
        return str(self.configuration.workload.family)


def observations_of(measurements: Iterable[Mapping[str, Any]]) -> list[Observation]:
    """Measurements by their flat columns; claims, derived and repeated figures tell nothing new, and those of
    a live broker from before its last change tell of another."""
    measurements = list(measurements)
    newest = _newest_epochs(row["source_id"] for row in measurements)
    known: dict[str, Configuration] = {}
    found = []
    for row in measurements:
        source, epoch = _epoch(row["source_id"])
        if epoch < newest[source]:
            continue
        if row["fact_kind"] != "measurement" or row["restates"] is not None or row["value"] is None:
            continue
        key = row["configuration_id"]
        if key is None:
            continue
        if key not in known:
            known[key] = Configuration.from_flat(
                {name: row[name] for name in _COLUMNS if row.get(name) is not None}
            )
        found.append(
            Observation(
                row["figure_id"], row["source_id"], known[key], row["metric"], row["value"], row["exam_group"]
            )
        )
    return found


def _newest_epochs(sources: Iterable[str]) -> dict[str, int]:
    newest: dict[str, int] = {}
    for one in set(sources):
        source, epoch = _epoch(one)
        newest[source] = max(newest.get(source, 1), epoch)
    return newest


def _epoch(source_id: str) -> tuple[str, int]:
    source, _, number = source_id.rpartition(EPOCH)
    return (source, int(number)) if source and number.isdigit() else (source_id, 1)


@dataclass(frozen=True)
class Observations:
    """Figures of one system, in the order of their ids whatever order they came in."""

    system: System
    rows: Sequence[Observation]

    @classmethod
    def of(cls, system: System, rows: Iterable[Observation]) -> Observations:
        """Those of the system's families that its physics has a value for."""
        mine = [row for row in rows if row.family in system.families]
        asked = cls(system, sorted(mine, key=lambda row: row.figure_id))
        excuses = system.excuses(Batch(asked.configurations))
        covered = asked._only(excuses[place] is None for place in asked.places)
        return covered._only(covered._explained())

    def _only(self, chosen: Iterable[bool]) -> Observations:
        return Observations(self.system, [row for row, kept in zip(self.rows, chosen, strict=True) if kept])

    def _explained(self) -> list[bool]:
        if not self.rows:
            return []
        metrics = self.system.evaluate(Batch(self.configurations), self.system.at_priors()).metrics
        targets = {target.metric: target for target in self.system.targets}
        return [
            row.metric in targets
            and bool(
                np.isfinite(metrics[row.metric][place])
                and np.isfinite(targets[row.metric].to_scale(np.array([row.value])))
            )
            for row, place in zip(self.rows, self.places, strict=True)
        ]

    @cached_property
    def configurations(self) -> list[Configuration]:
        return list({row.configuration.configuration_id: row.configuration for row in self.rows}.values())

    @cached_property
    def places(self) -> Places:
        """Which configuration each row measures."""
        place = {one.configuration_id: at for at, one in enumerate(self.configurations)}
        return np.array([place[row.configuration.configuration_id] for row in self.rows], dtype=np.int64)

    @cached_property
    def reference(self) -> Platform | None:
        """The machine that most rows were measured on, of those that others can be compared with."""
        counted = Counter(row.configuration.platform for row in self.rows)
        rated = Counter({platform: rows for platform, rows in counted.items() if is_rated(platform)})
        return next((platform for platform, _ in (rated or counted).most_common(1)), None)

    def batch(self, reference: Platform | None) -> Batch:
        """The configurations, on machines that differ from this one by their ratings."""
        columns = Columns.of(self.configurations)
        return Batch(columns, None if reference is None else transfer(columns, reference))

    def with_effects(self) -> Observations:
        """Of a system that has a parameter for each product and machine among the rows."""
        return Observations(self.system.seen_in(Columns.of(self.configurations)), self.rows)

    @cached_property
    def values(self) -> Array:
        return np.array([row.value for row in self.rows], float)

    @property
    def digest(self) -> str:
        """Identifies the data: the same figures with the same meaning give the same fit."""
        digest = hashlib.sha256()
        for row in self.rows:
            digest.update(
                f"{row.figure_id}|{row.configuration.configuration_id}|{row.metric}|{row.value!r}\n".encode()
            )
        return digest.hexdigest()[:16]
