"""Damaged tables restored, and what that costs in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twin.app.freshness import MADE
from twin.core.settings import Settings
from twin.core.tables import TABLES, Table

if TYPE_CHECKING:
    from features.repairing import Repair

KEPT = {name: table for name, table in TABLES.items() if table.layer != "file"}


@dataclass(frozen=True)
class Plan:
    """What would be done to one table."""

    table: Table
    repair: Repair

    @property
    def told(self) -> str:
        found = "; ".join(map(str, self.repair.damages)) or "sound"
        if self.repair.version is None:
            result = "no version is sound: the table is set aside and begins anew"
        else:
            result = f"version {self.repair.version} is restored"
        lost = [
            f"{version} of {at:%Y-%m-%d %H:%M}" if at else str(version)
            for version, at in self.repair.lost.items()
        ]
        given_up = f"; given up: version {', '.join(lost)}" if lost else "; nothing is lost"
        return f"{self.table.name}: {found}. {result}{given_up}. {self.again if lost else ''}".strip()

    @property
    def again(self) -> str:
        """How what is given up comes back."""
        if self.table in MADE:
            return "`twin train` or the next build_features makes it again from bronze."
        return "Files that were taken in since are in `processed`: take them in again with `twin ingest`."


def plans(settings: Settings, names: Sequence[str], to: int | None, anew: bool) -> list[Plan]:
    """For the tables that are named, or for all that are damaged."""
    from features.lake import Lake, NoSuchTable
    from features.repairing import repair_of

    lake, found = Lake(settings), []
    for table in [KEPT[name] for name in names] or KEPT.values():
        try:
            plan = Plan(table, repair_of(lake, table, to, anew))
        except NoSuchTable:
            if names:
                raise
            continue
        if plan.repair.damages or to is not None or anew:
            found.append(plan)
    return found


def carry_out(settings: Settings, chosen: Sequence[Plan]) -> dict[str, str]:
    """Where each table's damaged files are now."""
    from features.lake import Lake
    from features.repairing import repair

    lake = Lake(settings)
    with lake.exclusive():
        return {plan.table.name: repair(lake, plan.table, plan.repair) for plan in chosen}
