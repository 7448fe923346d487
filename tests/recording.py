"""Last results of the long targets: a JSON file for each in `infra/reliability`, all of them on one page.

A figure stands on the page only because a command wrote it there, with the day, the commit and the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

PROJECT = Path(__file__).resolve().parents[1]
_RESULTS = PROJECT / "infra" / "reliability"
_PAGE = PROJECT / "infra" / "RELIABILITY.md"
_HEAD = """# What was tried, and what was lost

Every table is the last result of a command that you can run; the command writes it here. It says when, on
which commit (`+` with changes that were not committed), on how many cores, and how busy the machine was (its
load over the last minute).
"""


def record(part: str, command: str, what: str, figures: dict[str, Any]) -> None:
    """The figures of a part that was tried, in the order in which a reader wants them."""
    _RESULTS.mkdir(parents=True, exist_ok=True)
    result = {
        "part": part,
        "command": command,
        "what": what,
        "at": datetime.now(UTC).isoformat(timespec="minutes"),
        "commit": _commit(),
        "cores": psutil.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "figures": figures,
    }
    (_RESULTS / f"{part}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    render()


def render() -> None:
    results = [json.loads(path.read_text()) for path in sorted(_RESULTS.glob("*.json"))]
    _PAGE.write_text("\n".join([_HEAD, *map(_section, results)]))


def _section(result: dict[str, Any]) -> str:
    rows = [f"| {name} | {_told(value)} |" for name, value in result["figures"].items()]
    return "\n".join(
        [
            f"## {result['what']}",
            "",
            "`{command}`, {day}, commit {commit}, {cores} cores, load {load}".format(
                day=result["at"][:10], **result
            ),
            "",
            "| | |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def _told(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=PROJECT, capture_output=True, text=True, check=False
        ).stdout.strip()

    # the results themselves are no change of what was tried
    results = (f":!{path.relative_to(PROJECT)}" for path in (_RESULTS, _PAGE))
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", *results)
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
