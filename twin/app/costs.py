"""What a configuration costs: prices as data that a planner edits."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import Field, ValidationError

from twin.core.columns import Columns, Numbers
from twin.core.fields import Row
from twin.core.outside import BadInput, read_text, yaml_of

Kind = TypeVar("Kind", bound="Prices")
Price = Annotated[float, Field(ge=0, le=1e12)]
# a few dozen prices with comments
_MOST_BYTES = 64 * 1024
Boxes = Annotated[list[Annotated[int, Field(ge=1, le=1000)]], Field(min_length=1, max_length=100)]


class BadCosts(Exception):
    """Not a cost model; `problems` name the field and what is wrong with it."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{field}: {reason}" for field, reason in problems))
        self.problems = problems


class Prices(Row):
    currency: Annotated[str, Field(max_length=20)] = "units"
    box: Price
    cpu: Price
    licence_unit: Price
    licence_units_per_cpu: Annotated[float, Field(ge=0, le=1000)]
    disk: dict[str, Price]
    other_disk: Price = 0.0

    def of(self, columns: Columns) -> Numbers:
        """One box of each configuration."""
        cpus, disks = columns.number("cpus"), columns.number("disks", absent=1.0)
        managers = columns.number("queue_managers", absent=0.0)
        drives = np.where(columns.is_("disk_layout", "dedicated"), np.maximum(disks, managers), disks)
        kinds, codes = columns.labels("log_disk")
        prices = np.array([self.disk.get(kind, self.other_disk) for kind in kinds])[codes]
        per_cpu = self.cpu + self.licence_units_per_cpu * self.licence_unit
        found: Numbers = self.box + cpus * per_cpu + drives * prices
        return found


class CostModel(Prices):
    """Prices, and what may be bought or set."""

    boxes: Boxes
    options: dict[str, dict[str, list[str | int | float | bool]]]

    @property
    def prices(self) -> Prices:
        return Prices.model_validate(self.model_dump(include=set(Prices.model_fields)))


def checked_costs(kind: type[Kind], values: Any) -> Kind:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise BadCosts(
            [(".".join(str(part) for part in one["loc"]), one["msg"]) for one in error.errors()]
        ) from error


def read_costs(path: Path) -> CostModel:
    try:
        return checked_costs(CostModel, yaml_of(read_text(path, _MOST_BYTES)))
    except BadInput as error:
        raise BadCosts([(str(path), f"is not YAML: {error}")]) from error


def shipped_text() -> str:
    return resources.files("twin.app").joinpath("costs.yaml").read_text(encoding="utf-8")


@cache
def shipped_costs() -> CostModel:
    return checked_costs(CostModel, yaml_of(shipped_text()))
