"""The `twin` command. Exit codes: 0 done, 1 failed, 2 bad input."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from features.damage import Unreadable
from twin.app.commands import (
    book,
    data,
    harness,
    learning,
    model,
    planning,
    platform,
    requests,
    serving,
    simulation,
    synchronisation,
    ui,
    upkeep,
)
from twin.app.commands.console import fail
from twin.app.journal import noted
from twin.core.settings import Settings

# one that only looks leaves no trace
_CHANGING = {
    "run", "up", "down", "ingest", "train", "backtest", "predict", "sync", "harness", "models", "tidy",
    "repair", "backup", "restore",
}  # fmt: skip


class _Commands(TyperGroup):
    """Whatever a command is about: the journal has a line about those that change something, and a table
    that cannot be read is told in a sentence."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return self._noted(ctx)
        except Unreadable as error:
            fail(1, str(error))

    def _noted(self, ctx: Any) -> Any:
        settings = Settings.from_environment()
        name = next(iter(ctx._protected_args), None)
        if name not in _CHANGING or not settings.home.is_dir():
            return super().invoke(ctx)
        with noted(settings, f"twin {name}"):
            return super().invoke(ctx)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Predicts the throughput of message-broker configurations nobody has measured.",
)
for _command in (
    data.run,
    platform.up,
    platform.status,
    platform.down,
    data.ingest,
    data.export,
    data.quality,
    data.tidy,
    upkeep.repair,
    upkeep.backup,
    upkeep.restore,
    upkeep.metrics,
    upkeep.doctor,
    model.calibrate,
    learning.train,
    learning.backtest,
    planning.whatif,
    planning.size,
    planning.advise,
    model.compare,
    simulation.simulate,
    synchronisation.sync,
    ui.ui,
    serving.serve,
    serving.tracking,
    serving.token,
    book.book,
    requests.schema,
    requests.example,
    requests.predict,
    requests.explain,
):
    app.command()(_command)
app.add_typer(learning.models, name="models")
app.add_typer(harness.harness, name="harness")


def main() -> None:
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
