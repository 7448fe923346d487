"""The steps that DAG tasks and commands call, in the order of the data flow.

Each step starts at most one Spark session, may be run twice with the same result, and returns what an
asset event should carry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twin.app.predicting import Answered, answer_file
from twin.core.measurement import PrintedFigure
from twin.core.settings import Settings
from twin.core.tables import (
    FIGURES,
    FINDINGS,
    FLOW_FEATURES,
    HARDWARE_FEATURES,
    MEASUREMENTS,
    QUARANTINE,
    TRAINING_SET,
)
from twin.sources.document import Document
from twin.sources.reading import read_figures
from twin.sources.report import Report, recognise, reports
from twin.sources.shipped import shipped_figures

if TYPE_CHECKING:
    from features.lake import Written


def ingest_reports(settings: Settings) -> dict[str, Any]:
    """Every known report's figures into bronze."""
    from features.bronze import figures_frame
    from features.lake import Lake
    from features.session import running_spark

    documents = _documents(settings)
    figures = [figure for report in reports().values() for figure in _figures(report, documents)]
    with running_spark(settings, "ingest_reports") as spark:
        return _event(Lake(settings).replace(FIGURES, figures_frame(spark, figures)))


def build_features(settings: Settings) -> dict[str, Any]:
    """Bronze figures validated into silver, and silver into feature tables."""
    from expectations.gate import findings_of
    from expectations.laws import MEASUREMENT_LAWS
    from features.feature_tables import flow_features, hardware_features, training_set
    from features.lake import Lake
    from features.session import running_spark
    from features.silver import interpreted, split

    lake = Lake(settings)
    with running_spark(settings, "build_features") as spark:
        candidates = interpreted(lake.spark(FIGURES, spark)).persist()
        findings = findings_of(settings, MEASUREMENTS, candidates, MEASUREMENT_LAWS)
        trusted, quarantined = split(candidates, findings)
        lake.replace(FINDINGS, findings)
        lake.replace(QUARANTINE, quarantined)
        lake.replace(MEASUREMENTS, trusted)
        measurements = lake.spark(MEASUREMENTS, spark)
        lake.replace(HARDWARE_FEATURES, hardware_features(measurements))
        lake.replace(FLOW_FEATURES, flow_features(measurements))
        hardware, flows = lake.spark(HARDWARE_FEATURES, spark), lake.spark(FLOW_FEATURES, spark)
        return _event(lake.replace(TRAINING_SET, training_set(measurements, hardware, flows)))


def train_models(settings: Settings) -> dict[str, Any]:
    from training.registry import train

    trained = train(settings)
    return {"version": trained.version, "changed": trained.changed, **trained.scores}


def answer_requests(settings: Settings) -> dict[str, Any]:
    """Every request file that waits in the home's `requests` folder, answered into `answers`."""
    from training.registry import RegisteredPredictor

    waiting = sorted((settings.home / "requests").glob("[!.]*"))
    if not waiting:
        return {"files": 0, "answers": 0, "rejects": 0}
    predictor = RegisteredPredictor(settings)
    folder = settings.home / "answers"
    folder.mkdir(parents=True, exist_ok=True)
    answered: list[Answered] = [answer_file(path, folder / path.name, predictor) for path in waiting]
    return {
        "files": len(answered),
        "answers": sum(len(one.rows) for one in answered),
        "rejects": sum(len(one.rejected) for one in answered),
    }


def _documents(settings: Settings) -> dict[str, Document]:
    """Report documents at hand, by source id."""
    found: dict[str, Document] = {}
    for path in sorted(settings.reports.glob("*.txt")) if settings.reports else []:
        document = Document.load(path)
        if report := recognise(document, reports().values()):
            found[report.source_id] = document
    return found


def _figures(report: Report, documents: dict[str, Document]) -> list[PrintedFigure]:
    """From the document where it is at hand, else the figures shipped for it."""
    document = documents.get(report.source_id)
    return read_figures(document, report) if document else shipped_figures(report.source_id)


def _event(written: Written) -> dict[str, Any]:
    return {
        "table": written.table,
        "version": written.version,
        "rows": written.rows,
        "fingerprint": written.fingerprint,
        "changed": written.changed,
    }
