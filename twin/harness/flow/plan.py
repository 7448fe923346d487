"""What workers are to do, in words that go to another process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from twin.core.workloads.live import LiveFlow
from twin.harness.brokers.registry import Place
from twin.harness.flow.database import DatabasePlace


@dataclass(frozen=True)
class Plan:
    flow: LiveFlow
    # of the names of its queues
    prefix: str
    # one for each broker that a message goes through
    places: Sequence[Place]
    # where the flow has a database node
    database: DatabasePlace | None = None

    def as_text(self) -> str:
        return json.dumps(
            {
                "flow": self.flow.model_dump(),
                "prefix": self.prefix,
                "places": [[place.broker, place.address] for place in self.places],
                "database": asdict(self.database) if self.database else None,
            }
        )

    @classmethod
    def of_text(cls, text: str) -> Plan:
        told = json.loads(text)
        database = told["database"]
        return cls(
            LiveFlow(**told["flow"]),
            told["prefix"],
            [Place(broker, address) for broker, address in told["places"]],
            DatabasePlace(**database) if database else None,
        )
