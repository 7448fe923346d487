"""The command that serves the what-if page."""

from __future__ import annotations

from typing import Annotated

import typer

from twin.app.commands.console import fail, out
from twin.core.settings import Settings

PREFERRED_PORT = 8050


def ui(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; the next free one if it is taken.")
    ] = PREFERRED_PORT,
) -> None:
    """Serve the what-if page on this machine's loopback until Ctrl-C: curves, sizing, batches, findings."""
    import uvicorn
    from threadpoolctl import threadpool_limits

    from twin.app.page.server import create_app
    from twin.app.services import ServiceFailed, free_port

    try:
        port = free_port(port)
    except ServiceFailed as error:
        fail(1, str(error))
    out.print(f"The page: http://127.0.0.1:{port} (Ctrl-C ends it)", highlight=False)
    app = create_app(Settings.from_environment())
    # a curve is small: threads would spend more time on waking each other than on its matrices
    with threadpool_limits(1):
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
