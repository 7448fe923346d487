"""Whether the tables that follow from bronze are up to date: made of the figures and by the code of now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twin.core.code import code_digest
from twin.core.settings import Settings
from twin.core.tables import FIGURES, RUNS, TABLES, Table

if TYPE_CHECKING:
    from features.lake import Lake

# what turns bronze into the other tables
_CODE = (
    "expectations", "features", "twin/core", "twin/sources", "twin/systems", "twin/queueing",
    "twin/calibration",
)  # fmt: skip
# runs are summed up while their files are read
MADE = tuple(table for table in TABLES.values() if table.layer in ("silver", "gold") and table != RUNS)


def remember(settings: Settings, lake: Lake) -> None:
    """All tables have just been made."""
    place = _place(settings)
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_suffix(".part")
    draft.write_text(json.dumps({"of": _made_of(lake), "gave": _versions(lake)}, indent=1))
    draft.replace(place)


def is_current(settings: Settings, lake: Lake) -> bool:
    """Nothing has changed since then: neither what they were made of, nor the tables themselves."""
    from features.lake import NoSuchTable

    try:
        noted = json.loads(_place(settings).read_text())
        return bool(noted == {"of": _made_of(lake), "gave": _versions(lake)})
    except (FileNotFoundError, json.JSONDecodeError, NoSuchTable):
        return False


def _made_of(lake: Lake) -> dict[str, Any]:
    return {
        "figures": _fingerprint(lake, FIGURES),
        "runs": _fingerprint(lake, RUNS),
        "code": code_digest(*_CODE),
    }


def _fingerprint(lake: Lake, table: Table) -> str | None:
    """None where nothing of the kind has come yet."""
    from features.lake import NoSuchTable

    try:
        return lake.written(table).fingerprint
    except NoSuchTable:
        return None


def _versions(lake: Lake) -> dict[str, int]:
    return {table.name: lake.version(table) for table in MADE}


def _place(settings: Settings) -> Path:
    return settings.home / "quality" / "built.json"
