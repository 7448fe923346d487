"""All that the book is made of, read once: figures, findings, documents, what was said of them, exams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from features.lake import Lake, NoSuchTable
from training.backtest import Exam, known
from training.dataset import Data
from training.hyperparameters import shipped
from training.registry import TRAINING_KEY, NoChampion, Registry, never_used
from training.splits import PROTOCOLS
from training.training import code_version, training_key
from twin.app.book.figures import Figure, Finding
from twin.app.book.held_out import Answers, physics_held_out, settings_of
from twin.core.settings import Settings
from twin.core.tables import DOCUMENTS, FINDINGS, MEASUREMENTS, QUARANTINE, TABLES

_CARD = "model_card.md"

Doing = Callable[[str], None]


@dataclass(frozen=True)
class Champion:
    """The registered model in charge, with its exam."""

    version: str
    reason: str
    # it learned from the figures and with the code of now
    is_current: bool
    exam: pd.DataFrame
    card: str


@dataclass(frozen=True)
class KeptTable:
    name: str
    layer: str
    description: str
    version: int
    rows: int


@dataclass(frozen=True)
class Material:
    figures: Sequence[Figure]
    findings: Sequence[Mapping[str, Any]]
    documents: Sequence[Mapping[str, Any]]
    tables: Sequence[KeptTable]
    champion: Champion | None
    # by protocol; what has not been sat by this code on these figures is missing
    exams: Mapping[str, Exam]


def gathered(settings: Settings, doing: Doing) -> Material:
    """Raises `NoSuchTable` where nothing has been validated yet."""
    lake = Lake(settings)
    doing("reading the tables")
    trusted, quarantined, findings, documents = (
        lake.arrow(table).to_pylist() for table in (MEASUREMENTS, QUARANTINE, FINDINGS, DOCUMENTS)
    )
    everything = [*trusted, *quarantined]
    physics = physics_held_out(
        settings,
        trusted,
        everything,
        code_version(),
        lambda done, of: doing(f"fitting the physics without each fold, {done} of {of}"),
    )
    doing("reading the champion's exam")
    champion = _champion(settings)
    answers = Answers(physics, None if champion is None else champion.exam)
    by_figure: dict[str, list[Finding]] = {}
    for one in findings:
        said = Finding(one["rule"], one["severity"], one["expected"], one["message"])
        by_figure.setdefault(one["figure_id"], []).append(said)
    wrong = {row["figure_id"] for row in quarantined}
    figures = [
        _figure(row, row["figure_id"] in wrong, by_figure.get(row["figure_id"], ()), answers)
        for row in sorted(everything, key=_as_printed)
    ]
    return Material(figures, findings, documents, _tables(lake), champion, _exams(settings, lake, champion))


def _as_printed(row: Mapping[str, Any]) -> tuple[str, int, int, str]:
    return row["source_id"], row["line"], row["column_index"], row["figure_id"]


def _figure(row: Mapping[str, Any], wrong: bool, findings: Sequence[Finding], answers: Answers) -> Figure:
    return Figure(
        figure_id=row["figure_id"],
        source_id=row["source_id"],
        line=row["line"],
        # a log is one of many files of a kind: what they have in common is what was run
        place=row["exam_group"] if row["source_kind"] == "log" else row["table_label"],
        header=row["column_header"],
        printed=row["printed"],
        metric=row["metric"],
        value=row["value"],
        value_low=row["value_low"],
        value_high=row["value_high"],
        source_kind=row["source_kind"],
        fact_kind=row["fact_kind"],
        row_keys=row["row_keys"],
        box=row["box"],
        configuration_id=row["configuration_id"],
        settings=settings_of(row),
        quarantined=wrong,
        findings=tuple(findings),
        answers=answers.of(row),
    )


def _champion(settings: Settings) -> Champion | None:
    # to look into a registry that is not there would make one, perhaps beside a training that does so too
    if never_used(settings):
        return None
    registry = Registry(settings)
    try:
        version = registry.champion()
    except NoChampion:
        return None
    import mlflow

    told = registry.told(version)
    return Champion(
        version=told.version,
        reason=told.reason,
        is_current=_present_key(settings) == version.tags.get(TRAINING_KEY),
        exam=registry.exam_rows(version),
        card=str(mlflow.artifacts.load_text(f"runs:/{version.run_id}/{_CARD}")),
    )


def _present_key(settings: Settings) -> str | None:
    try:
        return training_key(settings)
    except NoSuchTable:
        return None


def _exams(settings: Settings, lake: Lake, champion: Champion | None) -> dict[str, Exam]:
    """The champion's own, and the others of these figures and this code."""
    found: dict[str, Exam | None] = {}
    try:
        data = Data.of(lake)
        found |= {name: known(settings, data, name, shipped(), code_version()) for name in PROTOCOLS}
    except NoSuchTable:
        pass
    if champion is not None:
        found["configuration"] = Exam("configuration", champion.exam)
    return {name: exam for name, exam in found.items() if exam is not None}


def _tables(lake: Lake) -> list[KeptTable]:
    return [
        KeptTable(table.name, table.layer, table.description, lake.version(table), rows)
        for table in TABLES.values()
        if table.layer != "file" and (rows := lake.rows(table)) is not None
    ]
