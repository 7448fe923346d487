"""Every system, by the families it explains. A new one is a module and a line here."""

from __future__ import annotations

from twin.systems import broker, cluster, generic, hub, live, messaging, pubsub, zos
from twin.systems.model import System

SYSTEMS: tuple[System, ...] = (
    broker.SYSTEM,
    hub.SYSTEM,
    pubsub.SYSTEM,
    cluster.SYSTEM,
    zos.SYSTEM,
    messaging.SYSTEM,
    live.SYSTEM,
    generic.SYSTEM,
)
BY_FAMILY: dict[str, System] = {family: system for system in SYSTEMS for family in system.families}
