"""What a home tells Prometheus: tables, findings, steps, files, the champion's exam, how far brokers are off.

Read from files at the moment of asking, without Spark. A part that cannot be told says so and costs the
others nothing.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from twin.app.journal import entries
from twin.app.landing import Landing
from twin.core.settings import Settings
from twin.core.tables import FINDINGS, QUARANTINE, TABLES

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Gauge

log = logging.getLogger(__name__)


class _Told:
    """Gauges of one answer."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry

        self.registry: CollectorRegistry = CollectorRegistry()
        self._gauges: dict[str, Gauge] = {}

    def say(self, name: str, what: str, value: float, **labels: str) -> None:
        from prometheus_client import Gauge

        if name not in self._gauges:
            self._gauges[name] = Gauge(f"twin_{name}", what, list(labels), registry=self.registry)
        gauge = self._gauges[name]
        (gauge.labels(**labels) if labels else gauge).set(value)


def home_metrics(settings: Settings) -> bytes:
    from prometheus_client import generate_latest

    told = _Told()
    parts: Sequence[Callable[[Settings, _Told], None]] = (
        _tables, _findings, _steps, _files, _champion, _divergence, _disk,
    )  # fmt: skip
    for part in parts:
        name = part.__name__.lstrip("_")
        try:
            part(settings, told)
            failed = 0
        except Exception:
            log.exception("%s cannot be told", name)
            failed = 1
        told.say("metrics_part_failed", "1 where a part of these metrics cannot be told", failed, part=name)
    answer: bytes = generate_latest(told.registry)
    return answer


def _tables(settings: Settings, told: _Told) -> None:
    from features.damage import Unreadable
    from features.lake import Lake, NoSuchTable

    lake = Lake(settings)
    for table in TABLES.values():
        if table.layer == "file":
            continue
        try:
            version, rows = lake.version(table), lake.rows(table)
        except NoSuchTable:
            continue
        except Unreadable:
            told.say("table_damaged", "1 where the log of a table is damaged", 1, table=table.name)
            continue
        told.say("table_damaged", "1 where the log of a table is damaged", 0, table=table.name)
        told.say("table_version", "Newest version of a table", version, table=table.name)
        told.say("table_rows", "Rows of a table", rows or 0, table=table.name)


def _findings(settings: Settings, told: _Told) -> None:
    from features.lake import Lake

    lake = Lake(settings)
    rows = lake.columns(FINDINGS, "rule", "severity", "source_id")
    for (rule, severity, source), count in Counter(
        (row["rule"], row["severity"], row["source_id"]) for row in rows
    ).items():
        told.say("findings", "Findings of the last validation", count,
                 rule=rule, severity=severity, source=source)  # fmt: skip
    quarantined = Counter(row["source_id"] for row in lake.columns(QUARANTINE, "source_id"))
    for source, count in quarantined.items():
        told.say("quarantined", "Figures in quarantine", count, source=source)


def _steps(settings: Settings, told: _Told) -> None:
    now = time.time()
    for entry in entries(settings):
        step, at = str(entry["step"]), datetime.fromisoformat(entry["at"]).timestamp()
        well = entry["outcome"] != "failed"
        if entry["outcome"] != "nothing":
            told.say("step_seconds", "How long a step took the last time it did something", entry["seconds"],
                     step=step)  # fmt: skip
        told.say("step_succeeded", "1 if a step's last try did not fail", well, step=step)
        if well:
            ended = at + entry["seconds"]
            told.say("step_last_success_timestamp_seconds", "When a step last ended well", ended, step=step)
            told.say("step_last_success_age_seconds", "Since a step last ended well", now - ended, step=step)


def _files(settings: Settings, told: _Told) -> None:
    for state, count in Landing(settings).counts().items():
        told.say("files", "Files of the landing zone", count, state=state)


def _champion(settings: Settings, told: _Told) -> None:
    from training.registry import CHAMPION, Registry, never_used

    if never_used(settings):
        return
    registry = Registry(settings)
    champion = registry.version_of(CHAMPION)
    if champion is None:
        return
    told.say("champion_version", "Version of the champion", int(champion.version))
    figures = {
        "median_ape": ("exam_median_ape_percent", "Median error on rows that were held out"),
        "mape": ("exam_mape_percent", "Mean error on rows that were held out"),
        "coverage90": ("exam_coverage90_ratio", "Share of held-out rows within the 90% interval"),
    }
    for target, scores in registry.exam_scores(champion).items():
        for source, predictors in {"all": scores["overall"], **scores["reports"]}.items():
            for predictor, one in predictors.items():
                for figure, (name, what) in figures.items():
                    if one.get(figure) is not None:
                        told.say(name, what, one[figure], target=target, source=source, predictor=predictor)


def _divergence(settings: Settings, told: _Told) -> None:
    from training.sync import Watched

    for file in sorted((settings.home / "sync").glob("*.json")):
        state = Watched.model_validate_json(file.read_bytes()).state
        diverged = "1 where a broker and its twin have parted"
        told.say("diverged", diverged, state.status == "diverged", broker=state.broker)
        told.say("periods", "Periods of a broker that counted", state.counted, broker=state.broker)
        if state.latest is not None and state.latest.percent is not None:
            told.say("divergence_percent", "Measured against predicted in the last period",
                     state.latest.percent, broker=state.broker)  # fmt: skip


def _disk(settings: Settings, told: _Told) -> None:
    if settings.home.is_dir():
        told.say("home_free_bytes", "Room left where the home is", shutil.disk_usage(settings.home).free)
