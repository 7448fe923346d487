"""Commands that keep the platform's data sound."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from twin.app.commands.console import AsJson, err, fail, out
from twin.core.settings import Settings


def repair(
    tables: Annotated[
        list[str] | None, typer.Argument(help="Tables; all that are damaged when left out.")
    ] = None,
    to: Annotated[
        int | None, typer.Option(help="Restore this version instead of the newest sound one.")
    ] = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Set the named tables aside as a whole; they begin anew.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Restore the newest sound version of damaged tables. Tells what is lost by that and whether it can be
    made again; damaged files are put aside, not deleted."""
    from features.lake import NoSuchTable, NoSuchVersion
    from twin.app.repairing import KEPT, carry_out, plans

    settings = Settings.from_environment()
    names = tables or []
    if unknown := [name for name in names if name not in KEPT]:
        fail(2, f"{unknown[0]!r} is not a table; there is {', '.join(KEPT)}")
    if (to is not None and len(names) != 1) or (anew and not names):
        fail(2, "name the table to bring to another version, or the tables to begin anew")
    try:
        found = plans(settings, names, to, anew)
    except (NoSuchTable, NoSuchVersion) as error:
        fail(2, str(error))
    if not as_json:
        for plan in found:
            out.print(plan.told, highlight=False, markup=False, soft_wrap=True)
    if not found:
        if as_json:
            print(json.dumps({"repaired": {}, "plans": {}}))
        else:
            out.print("No table is damaged.")
        return
    if not yes and not (sys.stdin.isatty() and typer.confirm("Do that?")):
        fail(1, "nothing was changed; `twin repair --yes` does it without asking")
    places = carry_out(settings, found)
    if as_json:
        told = {plan.table.name: {"told": plan.told, "version": plan.repair.version} for plan in found}
        print(json.dumps({"repaired": places, "plans": told}))
        return
    for name, place in places.items():
        err.print(f"{name}: repaired; what was damaged is in {place}", markup=False, soft_wrap=True)


def backup(
    to: Annotated[Path, typer.Argument(metavar="FILE.tar.zst|FOLDER", help="Where to; it must not exist.")],
    with_secrets: Annotated[
        bool,
        typer.Option("--with-secrets", help="Tokens, passwords and keys too: guard it like them."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Save TWIN_HOME while the platform may be running: tables, models, databases, files that landed,
    answers. PostgreSQL databases of Airflow and MLflow come along by pg_dump."""
    from twin.app.backup import CannotBackUp, back_up
    from twin.app.databases import DatabaseFailed

    with err.status("saving") if err.is_terminal else nullcontext() as status:
        try:
            saved = back_up(
                Settings.from_environment(),
                to.absolute(),
                with_secrets,
                (lambda what: status.update(f"saving {what}")) if status else lambda _: None,
            )
        except CannotBackUp as error:
            fail(2, str(error))
        except (DatabaseFailed, OSError) as error:
            fail(1, str(error))
    if as_json:
        print(json.dumps(vars(saved) | {"place": str(saved.place)}))
        return
    out.print(
        f"{saved.place}: {saved.files} files, {saved.bytes / 1e6:.1f} MB", highlight=False, soft_wrap=True
    )
    for one in saved.elsewhere:
        err.print(f"not in it: {one}", style="yellow", markup=False, soft_wrap=True)


def restore(
    backup: Annotated[Path, typer.Argument(help="What `twin backup` wrote.")],
    into: Annotated[
        Path | None, typer.Option(help="Another home than TWIN_HOME; its models' paths follow.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put a home that is there aside first (HOME.before-TIME).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a backup and put it in its place. A home that has content is left alone unless told otherwise."""
    from twin.app.databases import DatabaseFailed
    from twin.app.platform import read_state
    from twin.app.restore import BadBackup, HomeIsTaken
    from twin.app.restore import restore as restore_home

    settings = Settings.from_environment()
    state = read_state(settings)
    if into is None and state is not None and state.is_up:
        fail(2, "the platform is up: `twin down` first")
    try:
        restored = restore_home(settings, backup, into, replace)
    except BadBackup as error:
        fail(2, f"{backup} was not restored: {error}")
    except HomeIsTaken as error:
        fail(2, str(error))
    except (DatabaseFailed, OSError) as error:
        fail(1, str(error))
    if as_json:
        print(
            json.dumps(
                {name: str(value) if value is not None else None for name, value in vars(restored).items()}
            )
        )
        return
    out.print(
        f"{restored.home}: {restored.files} files of {restored.made_at}", highlight=False, soft_wrap=True
    )
    if restored.before is not None:
        out.print(f"what was there before is in {restored.before}", highlight=False, soft_wrap=True)


def metrics() -> None:
    """What the home tells Prometheus, as the page answers it at /metrics: tables, findings, steps, files, the
    champion's exam, how far live brokers are off."""
    from twin.app.metrics import home_metrics

    print(home_metrics(Settings.from_environment()).decode(), end="")


def doctor(
    fix: Annotated[
        bool, typer.Option("--fix", help="Do what nothing is lost by: leftovers removed, modes set.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look at everything that a person can fix, every file of every table included, and say what to do. Exit
    code 1 if something is wrong."""
    from twin.app.doctor.checkup import checkup

    colours = {"well": "green", "note": "yellow", "wrong": "red"}
    found = []
    with err.status("looking") if err.is_terminal else nullcontext() as status:
        for one in checkup(
            Settings.from_environment(),
            (lambda what: status.update(f"looking at {what}")) if status else lambda _: None,
        ):
            mended = fix and one.mend is not None
            if mended and one.mend is not None:
                one.mend()
            found.append(
                {"check": one.check, "state": one.state, "what": one.what, "todo": one.todo, "mended": mended}
            )
            if not as_json:
                colour = colours[one.state]
                todo = "mended" if mended else one.todo
                told = escape(f"{one.check}: {one.what}" + (f"; {todo}" if todo else ""))
                out.print(f"[{colour}]{one.state:5}[/{colour}] {told}", highlight=False, soft_wrap=True)
    if as_json:
        print(json.dumps(found, indent=1))
    if any(one["state"] == "wrong" and not one["mended"] for one in found):
        raise typer.Exit(1)
