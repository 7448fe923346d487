"""Measured figures as the page shows them: where to start from, and the points beside a curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from twin.core.checking import KNOWN
from twin.core.columns import Texts, without_text
from twin.core.prediction import THROUGHPUT
from twin.core.settings import Settings

_NOT_TOLD = {"offered_rate_msgs_per_s"}
_FROM_TIME = "elapsed_ms"
_TOLD = ("source_id", "table_label", "line", "printed", "configuration_id")


@dataclass(frozen=True)
class Figures:
    """Rows of the measurements that were measured and have a configuration."""

    rows: pd.DataFrame

    def starts(self) -> list[dict[str, Any]]:
        """Each configuration once, with its first line, what tells it from its neighbours, and its rate."""
        found = []
        rates = self._of(THROUGHPUT).groupby("configuration_id")["value"].mean()
        first = self.rows.sort_values(["source_id", "line"]).drop_duplicates("configuration_id")
        for (source, table), part in first.groupby(["source_id", "table_label"], sort=False):
            varying = [name for name in KNOWN if part[name].nunique(dropna=False) > 1]
            for row in part.to_dict("records"):
                told = [f"{name} {_text(row[name])}" for name in varying if _known(row[name])]
                rate = rates.get(row["configuration_id"])
                found.append(
                    {
                        "configuration_id": row["configuration_id"],
                        "family": row["family"],
                        "source_id": source,
                        "table_label": table,
                        "line": int(row["line"]),
                        "label": ", ".join(told),
                        THROUGHPUT: None if rate is None else float(rate),
                    }
                )
        return found

    def beside(self, flat: Mapping[str, Any], along: str, metric: str) -> list[dict[str, Any]]:
        """What was measured of configurations that differ from this one in one field only."""
        cells = self._cells(str(flat["family"]), metric)
        same = ~without_text(cells[along])
        for name in KNOWN:
            if name not in (along, *_NOT_TOLD):
                same &= cells[name] == flat.get(name)
        rows = [
            {"x": cells[along][at], **{name: cells[name][at] for name in ("value", *_TOLD)}}
            for at in np.flatnonzero(same)
        ]
        return sorted(rows, key=lambda row: row["x"])

    def configuration(self, configuration_id: str) -> dict[str, Any] | None:
        rows = self.rows[self.rows["configuration_id"] == configuration_id]
        if rows.empty:
            return None
        return {name: _plain(rows.iloc[0][name]) for name in KNOWN if _known(rows.iloc[0][name])}

    def _cells(self, family: str, metric: str) -> dict[str, Texts]:
        """The figures of a family as plain values by column: a curve is drawn many times a second."""
        if (family, metric) not in self._plain_cells:
            rows = self._of(metric)
            rows = rows[rows["family"] == family]
            self._plain_cells[family, metric] = {
                name: np.array([_plain(one) if _known(one) else None for one in rows[name]], dtype=object)
                for name in {*KNOWN, "value", *_TOLD}
            }
        return self._plain_cells[family, metric]

    @cached_property
    def _plain_cells(self) -> dict[tuple[str, str], dict[str, Texts]]:
        return {}

    def _of(self, metric: str) -> pd.DataFrame:
        """A rate that a report gives as a time counts as well."""
        names = (metric, _FROM_TIME) if metric == THROUGHPUT else (metric,)
        rows = self.rows[self.rows["metric"].isin(names)]
        timed = rows["metric"].eq(_FROM_TIME) & (metric == THROUGHPUT)
        return rows.assign(value=np.where(timed, 1000 / rows["value"], rows["value"]))


def read_figures(settings: Settings) -> Figures:
    from features.lake import Lake
    from twin.core.tables import MEASUREMENTS

    measured = "fact_kind = 'measurement' AND restates IS NULL AND configuration_id IS NOT NULL AND value > 0"
    rows = Lake(settings).arrow(MEASUREMENTS, where=measured)
    return Figures(rows.select(["family", "metric", "value", *_TOLD, *_own(rows.column_names)]).to_pandas())


def _own(columns: Sequence[str]) -> list[str]:
    return [name for name in columns if name in KNOWN and name != "family"]


def _known(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and np.isnan(value))


def _plain(value: Any) -> Any:
    """What JSON has: a column with gaps holds its whole numbers as floats."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: Any) -> str:
    value = _plain(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
