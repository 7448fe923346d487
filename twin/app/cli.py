"""The `twin` command. Exit codes: 0 done, 1 failed, 2 bad input."""

from __future__ import annotations

import sys

import typer

from twin.app.commands import (
    book,
    data,
    harness,
    learning,
    model,
    planning,
    platform,
    requests,
    simulation,
    synchronisation,
    ui,
)

app = typer.Typer(
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
