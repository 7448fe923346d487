"""What happens over time after something failed, as any system tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twin.queueing.network import Array


@dataclass(frozen=True)
class Scenario:
    """What fails is up to the system; this is what the configuration does not say of it."""

    seed: int = 1
    # of a cluster: another hub takes the messages that this one cannot
    second_hub: bool = False
    # of a pair of boxes: from the failure of one until the other runs its queue managers
    takeover_s: float = 60.0


@dataclass(frozen=True)
class Course:
    """One quantity, second by second."""

    name: str
    unit: str
    values: Array


@dataclass(frozen=True)
class Transient:
    """`time` in seconds since something, and courses over it; moments worth a mark; what is read off them;
    and a sentence."""

    title: str
    since: str
    time: Array
    courses: Sequence[Course]
    marks: Sequence[tuple[float, str]]
    metrics: Mapping[str, float | None]
    verdict: str
