"""Commands that serve: the champion, the registry, and the tokens that are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from twin.app.commands.console import fail, out
from twin.core.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from twin.app.serving.gate import Gate

_PORT_HELP = "Port to listen on; the next free one if it is taken."
Port = Annotated[int, typer.Option(min=0, max=65535, help=_PORT_HELP)]


def serve(port: Port = 5001) -> None:
    """Serve the champion of the registry until Ctrl-C: predictions at /invocations, as MLflow serves them. A
    new champion takes over without a restart."""
    from twin.app.serving.serving import create_serving

    listen_until_told("The champion", create_serving, Settings.from_environment(), port)


def tracking(port: Port = 5000) -> None:
    """Serve MLflow until Ctrl-C: runs, registry, files and its page. A reader only looks."""
    from twin.app.local_mlflow import has_own_server
    from twin.app.serving.tracking import create_tracking

    settings = Settings.from_environment()
    if has_own_server(settings):
        fail(2, "MLFLOW_TRACKING_URI leads to a server; this command needs the database to serve")
    listen_until_told("MLflow", create_tracking, settings, port)


def token(role: Annotated[str, typer.Argument(help="reader or operator")]) -> None:
    """Print the token of a role: sent as `Authorization: Bearer TOKEN`, or typed into a browser as the
    password of the user that is called like the role."""
    from twin.app.serving.tokens import ROLES, BadTokens, kept_tokens

    found = next((one for one in ROLES if one == role), None)
    if found is None:
        fail(2, f"{role!r} is none of {', '.join(ROLES)}")
    try:
        print(kept_tokens(Settings.from_environment()).of[found])
    except BadTokens as error:
        fail(1, str(error))


def listen_until_told(what: str, create: Callable[[Settings], Gate], settings: Settings, port: int) -> None:
    from twin.app.services import ServiceFailed, free_port, log_to_stderr
    from twin.app.serving.listening import listen
    from twin.app.serving.places import is_loopback, url_of
    from twin.app.serving.tokens import BadTokens

    log_to_stderr()
    try:
        port = free_port(port, host=settings.host)
        app = create(settings)
    except (ServiceFailed, BadTokens) as error:
        fail(1, str(error))
    out.print(f"{what}: {url_of(settings.host, port)} (Ctrl-C ends it)", highlight=False)
    if not is_loopback(settings.host):
        tokens = f"A token is asked for; both are kept in {settings.tokens_file}"
        out.print(tokens, highlight=False, markup=False, soft_wrap=True)
    listen(app, settings, port)
