"""What was measured, so that a question far from it is told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from twin.core.columns import ABSENT, Columns, Texts
from twin.core.configuration import Configuration
from twin.core.fields import Field, Row, fields_of

# a column may be asked up to this many times its greatest measured value, unless a system says otherwise
_REACH = 4.0
# names and ratings of machines are the business of the transfer between them
_NOT_COMPARED = {
    "machine", "product", "version", "os", "mhz", "specint_rate95", "lspr_itr", "memory_mb", "disks",
    "network_mbps", "offered_rate_msgs_per_s",
}  # fmt: skip
_COMPARED: tuple[Field, ...] = tuple(
    field for field in fields_of(Configuration) if field.name not in _NOT_COMPARED
)


class Domain(Row):
    """Per column the range of its numbers, or its values."""

    ranges: dict[str, tuple[float, float]]
    values: dict[str, tuple[str, ...]]


def domain_of(configurations: Sequence[Configuration]) -> Domain:
    rows = [one.flat() for one in configurations]
    ranges, values = {}, {}
    for field in _COMPARED:
        seen = [row[field.name] for row in rows if row.get(field.name) is not None]
        if not seen:
            continue
        if field.kind in ("integer", "number"):
            ranges[field.name] = (float(min(seen)), float(max(seen)))
        else:
            values[field.name] = tuple(sorted({str(value) for value in seen}))
    return Domain(ranges=ranges, values=values)


def too_far(columns: Columns, domain: Domain, reach: Mapping[str, float]) -> Texts:
    """Per configuration the first column that lies beyond what the physics is trusted to reach."""
    found = np.full(columns.size, None, dtype=object)
    for name, (_, high) in domain.ranges.items():
        values = columns.number(name)
        for at in np.flatnonzero(values > max(high, 1.0) * reach.get(name, _REACH)):
            found[at] = found[at] or f"{name}: {values[at]:g} is far beyond what was measured ({high:g})"
    return found


def outside(columns: Columns, domain: Domain) -> Texts:
    """Per configuration the columns that lie outside what was measured, if only a little."""
    found = np.full(columns.size, None, dtype=object)

    def tell(at: int, what: str) -> None:
        found[at] = what if found[at] is None else f"{found[at]}; {what}"

    for name, (low, high) in domain.ranges.items():
        values = columns.number(name)
        for at in np.flatnonzero((values < low) | (values > high)):
            tell(int(at), f"{name} = {values[at]:g} (measured: {low:g} to {high:g})")
    for name, seen in domain.values.items():
        labels, codes = columns.labels(name)
        for code, label in enumerate(labels):
            if label not in (*seen, ABSENT):
                for at in np.flatnonzero(codes == code):
                    tell(int(at), f"{name} = {label} (measured: {', '.join(seen)})")
    return found
