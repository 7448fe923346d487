"""MLflow's server and the champion's serving as services of the platform."""

from __future__ import annotations

from twin.app.services import Service, own_service
from twin.core.settings import Settings


def has_own_server(settings: Settings) -> bool:
    """Where the tracking address is a server's already, that one is used."""
    return settings.tracking_uri.startswith("http")


def mlflow_service(settings: Settings, port: int) -> Service:
    return own_service(settings, "mlflow", "tracking", port)


def serving_service(settings: Settings, port: int) -> Service:
    return own_service(settings, "serving", "serve", port, "/invocations")
