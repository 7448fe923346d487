"""Tells Airflow's triggerer that files wait in the inbox."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

_LOOK_EVERY_S = 5


class InboxTrigger(BaseEventTrigger):
    """An event when a file of a kind has come; with `again_s`, once more every so many seconds while one
    waits."""

    def __init__(self, kind: str, again_s: float | None = None) -> None:
        super().__init__()
        self.kind, self.again_s = kind, again_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "kind": self.kind,
            "again_s": self.again_s,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        told: list[str] = []
        when = time.monotonic()
        while True:
            waiting = await asyncio.to_thread(_waiting, self.kind)
            again = self.again_s is not None and time.monotonic() - when >= self.again_s
            if set(waiting) - set(told) or (waiting and again):
                when = time.monotonic()
                yield TriggerEvent({"files": waiting})
            told = waiting
            await asyncio.sleep(_LOOK_EVERY_S)


def _waiting(kind: Any) -> list[str]:
    from twin.app.landing import Landing
    from twin.core.settings import Settings

    return Landing(Settings.from_environment()).waiting(kind)
