"""What is remembered of a watched broker between two periods, and how its figures are named.

An approved calibration begins an epoch: the broker is another one than before. Its figures go under a name of
their own from then on, and those of earlier epochs are not learned from any more
(`twin/calibration/observations.py`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from twin.calibration.observations import EPOCH
from twin.core.settings import Settings
from twin.harness.brokers.interface import Broker
from twin.harness.machine import this_machine
from twin.sources.harness.reading import PREFIX, slug

if TYPE_CHECKING:
    from training.sync import Watched


def name_of(broker: Broker) -> str:
    return f"{broker.product} {this_machine()['machine']}"


def source_of(broker: Broker, epoch: int) -> str:
    return f"{PREFIX}{slug(name_of(broker))}{EPOCH}{epoch}"


def remembered(settings: Settings, broker: Broker) -> Watched | None:
    from training.sync import Watched

    path = _path(settings, name_of(broker))
    return Watched.model_validate_json(path.read_bytes()) if path.exists() else None


def known_epoch(settings: Settings, broker: Broker) -> int:
    found = remembered(settings, broker) if _path(settings, name_of(broker)).exists() else None
    return 1 if found is None else found.epoch


def remember(settings: Settings, now: Watched) -> None:
    """Whole or not at all."""
    path = _path(settings, now.state.broker)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    unfinished.write_text(now.model_dump_json(indent=1))
    unfinished.replace(path)


def _path(settings: Settings, name: str) -> Path:
    return settings.home / "sync" / f"{slug(name)}.json"
