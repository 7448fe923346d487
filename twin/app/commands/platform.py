"""Commands of the platform that stays up."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid

from twin.app.commands.console import AsJson, err, fail, out
from twin.app.platform import PlatformState
from twin.core.settings import Settings

_COLOURS = {"healthy": "green", "waiting": "yellow", "starting": "yellow", "restarting": "yellow"}


def up(
    foreground: Annotated[
        bool,
        typer.Option("--foreground", help="Stay in the foreground until Ctrl-C, for containers and systemd."),
    ] = False,
) -> None:
    """Bring the platform up: Airflow, MLflow, the champion's serving and the what-if page. It stays up until
    `twin down`. Only this machine can ask unless TWIN_HOST says otherwise; then a token is needed."""
    from twin.app.local_airflow import AirflowFailed
    from twin.app.platform import PlatformFailed, bring_up, read_state, take_down
    from twin.app.services import ServiceFailed, log_to_stderr
    from twin.app.serving.tokens import BadTokens
    from twin.app.supervisor import run_until_told_to_stop

    settings = Settings.from_environment()
    state = read_state(settings)
    if state is not None and state.is_up:
        out.print("The platform is up already.")
        _print_services(state)
        return
    try:
        _print_login(settings)
        if foreground:
            log_to_stderr()
            run_until_told_to_stop(settings)
            return
    except (AirflowFailed, BadTokens, ServiceFailed) as error:
        fail(1, str(error))
    began = time.monotonic()
    try:
        with err.status("starting") as status:
            state = bring_up(settings, lambda seen: status.update(_progress(seen)))
    except PlatformFailed as error:
        fail(1, str(error))
    except KeyboardInterrupt:
        take_down(settings)
        raise
    out.print(
        f"The platform is up [dim]({time.monotonic() - began:.0f} s)[/dim]; logs: {settings.home / 'logs'}"
    )
    _print_services(state)


def status(as_json: AsJson = False) -> None:
    """What is up, since when, and where; and what became of the files that landed. Exit code 1 unless all of
    it is well."""
    from twin.app.landing import Landing
    from twin.app.platform import read_state

    settings = Settings.from_environment()
    state, files = read_state(settings), Landing(settings).counts()
    if as_json:
        print(json.dumps(_figures(state) | {"files": files}))
    elif state is None:
        out.print("The platform is not up: `twin up` brings it up.")
    else:
        if not state.is_up:
            out.print("The platform is not up: its supervisor was killed. `twin down` ends what it left.")
        _print_services(state)
    if not as_json:
        out.print(f"Files: {', '.join(f'{count} {what}' for what, count in files.items())}", highlight=False)
    if state is None or not state.well:
        raise typer.Exit(1)


def down() -> None:
    """End the platform and wait until nothing of it is left."""
    from twin.app.platform import take_down

    began = time.monotonic()
    with err.status("ending"):
        was_up = take_down(Settings.from_environment())
    if was_up:
        out.print(f"The platform is down [dim]({time.monotonic() - began:.0f} s)[/dim]")
    else:
        out.print("The platform was not up.")


def _print_login(settings: Settings) -> None:
    """The password is shown once, by the call that makes it up."""
    from twin.app.local_airflow import USER, password, passwords_file
    from twin.app.serving.tokens import tokens_if_needed

    file = passwords_file(settings)
    if file.exists():
        login = f"Airflow's user and password are in {file}"
    else:
        login = f"Airflow's user is {USER}, the password {password(settings)}; both are kept in {file}"
    out.print(login, soft_wrap=True, highlight=False, markup=False)
    if tokens_if_needed(settings) is not None:
        tokens = (
            f"MLflow, serving and the page listen on {settings.host} and ask for a token: "
            f"`twin token reader` or `twin token operator` prints one; both are in {settings.tokens_file}"
        )
        out.print(tokens, soft_wrap=True, highlight=False, markup=False)


def _print_services(state: PlatformState) -> None:
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("service", "state", "pid", "since", "url"):
        # on a narrow terminal addresses fold and states stay words
        grid.add_column(column, no_wrap=column not in ("state", "url"), overflow="fold", min_width=7)
    for one in state.services:
        colour = _COLOURS.get(one.state, "red")
        since = f"{one.since.astimezone():%d %b %H:%M}" if one.since else ""
        told = f"[{colour}]{one.state}[/{colour}] {one.note}".rstrip()
        grid.add_row(one.name, told, str(one.process.pid) if one.process else "", since, one.url)
    out.print(grid)


def _figures(state: PlatformState | None) -> dict[str, object]:
    if state is None:
        return {"up": False, "healthy": False, "services": []}
    services = [
        one.model_dump(mode="json", exclude={"process"}) | {"pid": one.process.pid if one.process else None}
        for one in state.services
    ]
    return {
        "up": state.is_up,
        "healthy": state.well,
        "pid": state.supervisor.pid,
        "started_at": state.started_at.isoformat(),
        "services": services,
    }


def _progress(state: PlatformState) -> str:
    missing = [one.name for one in state.services if one.state not in ("healthy", "waiting")]
    return f"starting {', '.join(missing)}" if state.services else "preparing the databases"
