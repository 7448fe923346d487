"""Moving demands between machines by ratings, with the doubt that this brings.

The doubts are stated, not fitted: no report measures one workload on two machines of different kind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import yaml

from twin.core.columns import Codes, Columns, Texts
from twin.core.configuration import Platform
from twin.queueing.network import Array, Flags


@dataclass(frozen=True)
class Transfer:
    """Per configuration: what a unit of work takes there, relative to the reference machine; the doubt as a
    standard deviation of the logarithm; and where no transfer is possible, why."""

    cpu: Array
    network: Array
    doubt: Array
    excuses: Texts

    @classmethod
    def none(cls, size: int) -> Transfer:
        return cls(np.ones(size), np.ones(size), np.zeros(size), np.full(size, None, dtype=object))

    def measured(self, where: Flags) -> Transfer:
        """Without doubt or excuse for machines whose own rows say what a rating leaves open."""
        excuses = self.excuses.copy()
        excuses[where] = None
        return replace(self, doubt=np.where(where, 0.0, self.doubt), excuses=excuses)

    def only(self, rows: Codes) -> Transfer:
        return Transfer(self.cpu[rows], self.network[rows], self.doubt[rows], self.excuses[rows])


_COMPARED = ("os", "machine", "cpus", "mhz", "specint_rate95", "lspr_itr", "network_mbps")
# the makers' measurements first, the clock last
_RATINGS = ("lspr_itr", "specint_rate95", "mhz")


def is_rated(platform: Platform) -> bool:
    return any(_per_processor(platform, name) for name in _RATINGS)


def transfer(columns: Columns, reference: Platform) -> Transfer:
    """Machines are few where configurations are many: each is compared once."""
    machines, codes = columns.labels(*_COMPARED)
    _, first = np.unique(codes, return_index=True)
    platforms = [Platform.model_construct(**columns.row(int(at), _COMPARED)) for at in first]
    moved = [_cpu(one, reference) for one in platforms]
    # labels that no configuration has are left out above, so codes are counted anew
    place = np.zeros(len(machines), dtype=np.int64)
    place[codes[first]] = np.arange(len(first))
    return Transfer(
        cpu=np.array([ratio for ratio, _, _ in moved], float),
        network=np.array([_network(one, reference) for one in platforms], float),
        doubt=np.array([doubt for _, doubt, _ in moved], float),
        excuses=np.array([excuse for _, _, excuse in moved], dtype=object),
    ).only(place[codes])


def _cpu(there: Platform, here: Platform) -> tuple[float, float, str | None]:
    """By the first rating that both machines have."""
    if there.machine == here.machine and there.mhz == here.mhz:
        return 1.0, 0.0, None
    doubts = ratings()["cpu"]
    for name in _RATINGS:
        theirs, ours = _per_processor(there, name), _per_processor(here, name)
        if theirs and ours:
            other_os = 0.0 if there.os == here.os else doubts["other_os"]["doubt"]
            return ours / theirs, doubts[name]["doubt"] + other_os, None
    rated = [name for name in _RATINGS if _per_processor(here, name)]
    if rated:
        reason = (
            f"{there.machine} and {here.machine}, where this was measured, have no rating in common: "
            f"give {' or '.join(rated)}"
        )
    else:
        reason = f"{here.machine}, where this was measured, has no rating to compare {there.machine} with"
    return 1.0, 0.0, reason


def _per_processor(platform: Platform, rating: str) -> float | None:
    """Demands are what one processor takes, so ratings of whole machines are divided among theirs."""
    told: float | None = getattr(platform, rating)
    if told:
        return told if rating == "mhz" else told / platform.cpus
    known: float | None = ratings()["machines"].get(platform.machine, {}).get(rating)
    return known


def _network(there: Platform, here: Platform) -> float:
    if there.network_mbps and here.network_mbps:
        return here.network_mbps / there.network_mbps
    return 1.0


@cache
def ratings() -> dict[str, Any]:
    text = resources.files("twin.systems").joinpath("ratings.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded
