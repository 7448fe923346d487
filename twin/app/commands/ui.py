"""The command that serves the what-if page."""

from __future__ import annotations

from twin.app.commands.serving import Port, listen_until_told
from twin.core.settings import Settings


def ui(port: Port = 8050) -> None:
    """Serve the what-if page until Ctrl-C: curves, sizing, batches, findings. On this machine's loopback,
    unless TWIN_HOST says otherwise."""
    from threadpoolctl import threadpool_limits

    from twin.app.page.server import create_app

    # a curve is small: threads would spend more time on waking each other than on its matrices
    with threadpool_limits(1):
        listen_until_told("The page", create_app, Settings.from_environment(), port)
