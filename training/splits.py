"""The exam's protocols: which rows are held out together, and what of their neighbourhood goes with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pandas as pd

from training.dataset import Data, Group
from twin.calibration.holding_out import FOLDS, fold_of


@dataclass(frozen=True)
class Fold:
    """Configurations to be predicted, and what must be gone before: they, and all figures of the groups, but
    for the configurations that are kept as anchors."""

    name: str
    asked: tuple[str, ...]
    groups: frozenset[Group] = frozenset()
    kept: tuple[str, ...] = ()
    # a second way to group the rows of a report is told apart
    view: str = field(default="")

    def training(self, data: Data) -> Data:
        return data.without({*self.asked}, self.groups, self.kept)


def configuration(data: Data) -> Iterator[Fold]:
    """An unseen point of a known table."""
    for number in range(FOLDS):
        yield Fold(str(number), tuple(one for one in data.rows.index if fold_of(one) == number))


def table(data: Data) -> Iterator[Fold]:
    """An unseen flow, layout or mode. Where a report's tables have columns that differ in kind, leaving out a
    column is a second view."""
    for (source, group), rows in data.rows.groupby(["source_id", "exam_group"]):
        yield Fold(f"{source}/{group}", tuple(rows.index), frozenset({(str(source), str(group))}))
    by_column = data.rows[data.rows["exam_column"].notna()]
    for (source, column), rows in by_column.groupby(["source_id", "exam_column"]):
        yield Fold(f"{source}/{column}", tuple(rows.index), view="column")


def anchored(data: Data) -> Iterator[Fold]:
    """A planner who has measured once: the busiest row of the group is known."""
    for (source, group), rows in data.rows.groupby(["source_id", "exam_group"]):
        anchor = _busiest(rows)
        asked = tuple(one for one in rows.index if one != anchor)
        if asked:
            yield Fold(f"{source}/{group}", asked, frozenset({(str(source), str(group))}), (anchor,))


def platform(data: Data) -> Iterator[Fold]:
    """A report that nobody has read."""
    for source, rows in data.rows.groupby("source_id"):
        groups = frozenset(
            (str(source), str(one.exam_group)) for one in data.figures if one.source_id == source
        )
        yield Fold(str(source), tuple(rows.index), groups)


PROTOCOLS = {
    "configuration": configuration,
    "table": table,
    "anchored": anchored,
    "platform": platform,
}


def held_out(data: Data, ids: set[str]) -> Iterator[Fold]:
    """Exactly these configurations, all at once."""
    yield Fold("hold-out", tuple(one for one in data.rows.index if one in ids))


def _busiest(rows: pd.DataFrame) -> str:
    """Highest population, then highest rate; the id decides between equals."""
    rate = rows["throughput_msgs_per_s"].fillna(1.0) * rows["deliveries"]
    order = rows.assign(rate=rate, id=rows.index).sort_values(
        ["population", "rate", "id"], ascending=[False, False, True]
    )
    return str(order.index[0])
