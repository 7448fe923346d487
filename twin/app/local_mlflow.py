"""MLflow on this machine: the tracking server with its page, and the champion behind MLflow's own server."""

from __future__ import annotations

import sys

from twin.app.services import Service, logs_folder, service_environment
from twin.core.settings import Settings


def has_own_server(settings: Settings) -> bool:
    """Where the tracking address is a server's already, that one is used."""
    return settings.tracking_uri.startswith("http")


def mlflow_service(settings: Settings, port: int) -> Service:
    url = f"http://127.0.0.1:{port}"
    store = ("--backend-store-uri", settings.tracking_uri)
    artifacts = ("--artifacts-destination", (settings.home / "mlflow" / "artifacts").as_uri())
    where = ("--host", "127.0.0.1", "--port", str(port), "--workers", "1")
    return Service(
        name="mlflow",
        command=(sys.executable, "-m", "mlflow", "server", *store, *artifacts, *where),
        environment=_environment(settings),
        log=logs_folder(settings) / "mlflow.log",
        url=url,
        health_url=f"{url}/health",
    )


def serving_service(settings: Settings, port: int, version: str) -> Service:
    """A version, not the alias: what runs stays what the state says until the supervisor changes both."""
    from training.registry import MODEL

    url = f"http://127.0.0.1:{port}"
    what = ("--model-uri", f"models:/{MODEL}/{version}", "--env-manager", "local")
    return Service(
        name="serving",
        command=(
            *(sys.executable, "-m", "mlflow", "models", "serve"),
            *what,
            *("--host", "127.0.0.1", "--port", str(port)),
        ),
        environment=_environment(settings) | {"MLFLOW_TRACKING_URI": settings.tracking_uri},
        log=logs_folder(settings) / "serving.log",
        url=f"{url}/invocations",
        health_url=f"{url}/ping",
    )


def _environment(settings: Settings) -> dict[str, str]:
    return service_environment(settings) | {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        # runners of jobs that nobody here submits
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        # every look at the health would be a line
        "UVICORN_ACCESS_LOG": "false",
    }
