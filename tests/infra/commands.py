"""Whether a command line of a deployment file is one that its program takes."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence

import typer.main

from twin.app.cli import app

from .compose import INFRA

# programs of PySpark, of Celery and of every system: their arguments are seen by `make topology`
_TRUSTED = ("spark-class", "celery", "true", "bash")


def problem_of(command: Sequence[str]) -> str | None:
    program, *arguments = command
    if program == "twin":
        return _of_twin(arguments)
    if program == "airflow":
        return _of_airflow(arguments)
    if program in _TRUSTED or (INFRA / "image" / program).is_file():
        return None
    return f"there is no {program}"


def _of_twin(arguments: Sequence[str]) -> str | None:
    name, *rest = arguments
    group = typer.main.get_command(app)
    found = group.get_command(None, name)  # type: ignore[arg-type, attr-defined]
    if found is None:
        return f"twin has no command {name}"
    try:
        found.make_context(name, list(rest), resilient_parsing=False).close()
    except Exception as error:
        return str(error)
    return None


def _of_airflow(arguments: Sequence[str]) -> str | None:
    from airflow.cli.cli_parser import get_parser

    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            get_parser().parse_args(list(arguments))
    except SystemExit:
        return complaint.getvalue()
    return None
