"""Why an answer is what it is: what limits it, which demands make it, what was measured nearby."""

from __future__ import annotations

from typing import Any

import numpy as np

from features.lake import Lake
from features.predicates import one_of
from training.model import HYBRID, PREDICTORS, TwinModel
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.tables import MEASUREMENTS
from twin.systems.registry import BY_FAMILY

_NEIGHBOURS = 3
_CONTRIBUTIONS = 6
_TOLD = ("source_id", "line", "table_label", "printed", "metric", "value", "unit")


def explain(model: TwinModel, lake: Lake, configuration: Configuration, target: str) -> dict[str, Any]:
    columns = Columns.of([configuration])
    answers = {name: model.answer(columns, target, name).typed()[0] for name in PREDICTORS}
    system = BY_FAMILY[str(configuration.workload.family)]
    corrected = model.corrected(system, columns, target)
    factor = float(np.exp(corrected.value - corrected.foretold.value)[0])
    elastic = model.physics.elasticities(system, columns, target)
    ranked = sorted(elastic.items(), key=lambda one: -abs(one[1]))[:_CONTRIBUTIONS]
    return {
        "answer": answers[HYBRID].model_dump(),
        "predictors": {name: one.model_dump() for name, one in answers.items()},
        # what experience with similar configurations multiplies the physics by
        "correction": factor if np.isfinite(factor) else None,
        # by how many percent the answer moves when a demand grows by one
        "contributions": {name: round(value, 4) for name, value in ranked if abs(value) >= 0.005},
        "neighbours": _neighbours(model, lake, columns, configuration, target),
    }


def _neighbours(
    model: TwinModel, lake: Lake, columns: Columns, configuration: Configuration, target: str
) -> list[dict[str, Any]]:
    """The nearest measured configurations: where they differ, and their figures with their lines."""
    known = model.nearest.get(target)
    if known is None:
        return []
    places, _ = known.places(columns, _NEIGHBOURS)
    ids = [known.ids[at] for at in places[0]]
    nearby = one_of("configuration_id", ids)
    rows = lake.arrow(
        MEASUREMENTS, where=f"{nearby} AND fact_kind = 'measurement' AND restates IS NULL"
    ).to_pylist()
    own = configuration.flat()
    found = []
    for one in ids:
        mine = [row for row in rows if row["configuration_id"] == one]
        differs = {
            name: mine[0][name]
            for name, value in own.items()
            if mine and mine[0].get(name) != value and name != "offered_rate_msgs_per_s"
        }
        figures = [{name: row[name] for name in _TOLD} for row in mine]
        found.append({"configuration_id": one, "differs": differs, "figures": figures})
    return found
