"""What goes into a home that faults are tried on, and what has to hold of it at any moment."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from features.lake import Lake, NoSuchTable
from twin.app.landing import SETTLING_S, Landing
from twin.core.settings import Settings
from twin.core.tables import DOCUMENTS, FIGURES, TABLES

ROWS = 20
# more than are answered without Spark
REQUESTS = 10_500
_HUB = {
    "family": "rules_hub", "os": "solaris", "machine": "Sun E4500", "cpus": 12, "mhz": 400, "product": "MQSI",
    "version": "1.1", "failed_over": False, "persistent": True, "messages_per_commit": 1,
}  # fmt: skip


def settings_of(home: Path) -> Settings:
    """Those of a home on one machine, whatever the environment says."""
    plain = Settings.from_environment()
    return replace(
        plain,
        home=home,
        lake_uri=(home / "lake").as_uri(),
        tracking_uri=f"sqlite:///{home / 'mlflow' / 'mlflow.db'}",
    )


def drop_figures(settings: Settings, number: int) -> str:
    """A file of measured rates into the inbox; every number has figures of its own. Returns its source."""
    name = f"drop-{number:03}"
    rows = [
        _HUB
        | {
            "queue_managers": 1 + at % 4,
            "rules_engines": 1 + at // 4,
            "message_bytes": 1024 + number,
            "metric": "throughput_msgs_per_s",
            "value": round(300 * (1 + at // 4) * (1 + at % 4) / (9 + at), 1),
            "published_at": "2026-01-01",
        }
        for at in range(ROWS)
    ]
    _land(settings, f"{name}.csv.yaml", f"source: {name}\n")
    _land(settings, f"{name}.csv", pd.DataFrame(rows).to_csv(index=False))
    return f"harness-{name}"


def drop_requests(settings: Settings) -> str:
    sizes = range(1024, 1024 + REQUESTS)
    asked = [_HUB | {"queue_managers": 2, "rules_engines": 3, "message_bytes": one} for one in sizes]
    _land(settings, "asked.jsonl", "".join(f"{json.dumps(one)}\n" for one in asked))
    return "asked.jsonl"


def _land(settings: Settings, name: str, content: str) -> None:
    landing = Landing(settings)
    landing.open()
    path = landing.inbox / name
    path.write_text(content)
    # as if it had been there for a while: a file that was just written is left alone
    before = path.stat().st_mtime - 2 * SETTLING_S
    os.utime(path, (before, before))


@dataclass(frozen=True)
class Seen:
    """What a look at a home counted."""

    tables: int
    lost: int
    twice: int


def looked_at(settings: Settings, sources: set[str]) -> Seen:
    """Every table that is there is read whole, and no key stands in one twice. Every source that was dropped
    is in bronze with all its rows, or its file still waits: never neither, never in part."""
    lake, landing = Lake(settings), Landing(settings)
    tables = twice = lost = 0
    for table in TABLES.values():
        if table.layer == "file":
            continue
        try:
            rows = lake.pandas(table)
        except NoSuchTable:
            continue
        tables += 1
        twice += int(rows.duplicated(list(table.key)).sum())
    rows_of = _rows_by_source(lake)
    for source in sources:
        there = rows_of.get(source, 0)
        waits = (landing.inbox / f"{source.removeprefix('harness-')}.csv").exists()
        lost += ROWS - there if there not in (0, ROWS) or (not there and not waits) else 0
    return Seen(tables, lost, twice)


def _rows_by_source(lake: Lake) -> dict[str, int]:
    try:
        figures = lake.pandas(FIGURES)
        documents = set(lake.pandas(DOCUMENTS)["source_id"])
    except NoSuchTable:
        return {}
    assert set(figures["source_id"]) <= documents
    counts: dict[str, int] = figures.groupby("source_id").size().to_dict()
    return counts


def content_of(settings: Settings) -> dict[str, str]:
    """A digest of every table's rows: two homes with the same content are as good as each other."""
    lake, digests = Lake(settings), {}
    for table in TABLES.values():
        try:
            rows = lake.pandas(table)
        except (NoSuchTable, KeyError):
            continue
        digests[table.name] = hashlib.sha256(rows.to_csv(index=False).encode()).hexdigest()
    return digests


def answers_of(settings: Settings, name: str) -> str | None:
    """None until it is answered."""
    path = settings.home / "answers" / name
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


def put_back(home: Path, kept: Path) -> None:
    """The home as it was when it was copied; at its own place, because MLflow notes whole paths."""
    shutil.rmtree(home)
    shutil.copytree(kept, home)
