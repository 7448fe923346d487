"""The `twin` command. Exit codes: 0 done, 1 failed, 2 bad input."""

from __future__ import annotations

import sys

import typer

from twin.app.commands import data, model, requests

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Predicts the throughput of message-broker configurations nobody has measured.",
)
for _command in (
    data.run,
    data.ingest,
    data.export,
    data.quality,
    model.calibrate,
    model.whatif,
    model.compare,
    requests.schema,
    requests.example,
    requests.predict,
):
    app.command()(_command)


def main() -> None:
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
