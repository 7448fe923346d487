"""infra/compose.yaml as data."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).resolve().parents[2]
INFRA = PROJECT / "infra"
FILE = INFRA / "compose.yaml"
OURS = "brokertwin:"


@cache
def compose() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return content


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def is_ours(service: dict[str, Any]) -> bool:
    """Runs in the image that we build; the others bring their own."""
    return str(service["image"]).startswith(OURS)


def ports_of(service: dict[str, Any]) -> list[int]:
    """Where it listens in its container."""
    published = [one.rpartition(":")[2] for one in service.get("ports", ())]
    return [int(one) for one in (*published, *service.get("expose", ()))]


def mounted_secret(one: str | dict[str, str]) -> str:
    return one if isinstance(one, str) else one["source"]
