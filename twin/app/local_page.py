"""The what-if page as a service of the platform."""

from __future__ import annotations

from twin.app.services import Service, own_service
from twin.core.settings import Settings


def page_service(settings: Settings, port: int) -> Service:
    return own_service(settings, "page", "ui", port)
