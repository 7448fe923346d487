"""What every command shares: two consoles, an option, a way to fail."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer
from rich.console import Console

out = Console()
err = Console(stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def fail(code: int, message: str) -> NoReturn:
    """Exit codes: 1 failed, 2 bad input."""
    err.print(f"twin: {message}", style="red", markup=False, soft_wrap=True)
    raise typer.Exit(code)
