"""The what-if page as a service of the platform."""

from __future__ import annotations

import sys

from twin.app.services import Service, logs_folder, service_environment
from twin.core.settings import Settings


def page_service(settings: Settings, port: int) -> Service:
    url = f"http://127.0.0.1:{port}"
    return Service(
        name="page",
        command=(sys.executable, "-m", "twin.app", "ui", "--port", str(port)),
        environment=service_environment(settings),
        log=logs_folder(settings) / "page.log",
        url=url,
        health_url=f"{url}/health",
    )
