"""Any broker on any platform, described by what a message costs it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from twin.core.fields import Row, quantity
from twin.core.workloads.quantities import MessageBytes


class Generic(Row):
    """Clients that keep a broker busy whose demands per message are known."""

    example: ClassVar[dict[str, Any]] = {
        "os": "linux", "machine": "server", "mhz": 3000, "disks": None, "log_disk": "solid_state",
        "product": "RabbitMQ", "version": "4.0",
    }  # fmt: skip

    family: Annotated[Literal["generic"], quantity("Experiment family")] = "generic"
    clients: Annotated[
        int,
        quantity("Messages under way at most: clients times their window", ge=1, le=1_000_000, example=16),
    ]
    message_bytes: MessageBytes
    demand_cpu_ms: Annotated[
        float, quantity("Processor time per message that the client waits for", unit="ms", ge=0, example=0.2)
    ]
    demand_background_cpu_ms: Annotated[
        float, quantity("Processor time per message beside that", unit="ms", ge=0, example=0.1)
    ] = 0.0
    demand_serial_ms: Annotated[
        float, quantity("Time per message in a section that few may enter", unit="ms", ge=0, example=0.05)
    ] = 0.0
    serial_threads: Annotated[int, quantity("Messages that may be in that section", ge=1, example=1)] = 1
    demand_log_ms: Annotated[
        float, quantity("Time of the forced writes of a message", unit="ms", ge=0, example=0.5)
    ] = 0.0
    commits_per_force: Annotated[
        float, quantity("Waiting commits that one forced write can take", ge=1, example=4)
    ] = 1.0
    transmissions: Annotated[float, quantity("Times that a message crosses the network", ge=0, example=2)] = (
        0.0
    )
    demand_delay_ms: Annotated[
        float, quantity("Time per message in which nothing of the broker is used", unit="ms", ge=0, example=0)
    ] = 0.0
    memory_per_client_kb: Annotated[
        float, quantity("Memory that a message under way takes", unit="KB", ge=0, example=100)
    ] = 0.0
