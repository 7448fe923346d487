"""The steps that DAG tasks and commands call, in the order of the data flow.

Each step starts at most one Spark session, may be run twice with the same result, and returns what an
asset event should carry. Steps that change several tables hold the lake's lock while they do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from twin.app.predicting import answer_file
from twin.app.predictors import asked
from twin.core.prediction import THROUGHPUT
from twin.core.settings import Settings
from twin.core.tables import (
    DOCUMENTS,
    FIGURES,
    FINDINGS,
    FLOW_FEATURES,
    HARDWARE_FEATURES,
    MEASUREMENTS,
    QUARANTINE,
    RESIDUALS,
    TRAINING_SET,
)
from twin.sources.documents import ReadDocument, files_in, read_document, shipped_documents

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from features.lake import Lake, Written


def ingest_reports(settings: Settings) -> dict[str, Any]:
    """Every known report's figures into bronze: its document's where it is at hand, else the shipped ones."""
    from features.lake import Lake
    from features.session import running_spark

    known = {document.card.source_id: document for document in shipped_documents()}
    at_hand = [read_document(path) for path in files_in([settings.reports] if settings.reports else [])]
    known |= {document.card.source_id: document for document in at_hand if document.card.declared}
    lake = Lake(settings)
    with running_spark(settings, "ingest_reports") as spark, lake.exclusive():
        return _event(_into_bronze(lake, spark, known.values()))


def ingest_documents(settings: Settings, documents: Iterable[ReadDocument]) -> dict[str, dict[str, Any]]:
    """Documents into bronze, and all of bronze validated into silver."""
    from features.lake import Lake
    from features.session import running_spark

    lake = Lake(settings)
    with running_spark(settings, "ingest") as spark, lake.exclusive():
        written = [_into_bronze(lake, spark, documents), *_validated(settings, lake, spark)]
    return {one.table: _event(one) for one in written}


def build_features(settings: Settings) -> dict[str, Any]:
    """Bronze figures validated into silver, and silver into feature tables."""
    from expectations.gate import verdict_of
    from expectations.leakage import TRAINING_LAWS
    from features.feature_tables import flow_features, hardware_features, training_set
    from features.lake import Lake
    from features.session import running_spark

    lake = Lake(settings)
    with running_spark(settings, "build_features") as spark, lake.exclusive():
        _validated(settings, lake, spark)
        measurements = lake.spark(MEASUREMENTS, spark)
        lake.replace(HARDWARE_FEATURES, hardware_features(measurements))
        lake.replace(FLOW_FEATURES, flow_features(measurements))
        hardware, flows = lake.spark(HARDWARE_FEATURES, spark), lake.spark(FLOW_FEATURES, spark)
        rows = training_set(measurements, hardware, flows)
        verdict = verdict_of(settings, TRAINING_SET, rows, TRAINING_LAWS)
        return _event(lake.replace(TRAINING_SET, rows, verdict))


def train_models(settings: Settings) -> dict[str, Any]:
    from training.training import headline, train

    trained = train(settings)
    return {
        "version": trained.version,
        "changed": trained.changed,
        "champion": trained.champion,
        "reason": trained.reason,
        **headline(trained.scores),
    }


def answer_requests(settings: Settings) -> dict[str, Any]:
    """Every request file that waits in the home's `requests` folder, answered into `answers`."""
    waiting = sorted((settings.home / "requests").glob("[!.]*"))
    if not waiting:
        return {"files": 0, "answers": 0, "excuses": 0, "rejects": 0}
    who = asked(settings, "hybrid", THROUGHPUT)
    folder = settings.home / "answers"
    folder.mkdir(parents=True, exist_ok=True)
    answered = [answer_file(path, folder / path.name, settings, lambda: who) for path in waiting]
    return {
        "files": len(answered),
        "answers": sum(one.answered for one in answered),
        "excuses": sum(one.excused for one in answered),
        "rejects": sum(one.rejected for one in answered),
    }


def _into_bronze(lake: Lake, spark: SparkSession, documents: Iterable[ReadDocument]) -> Written:
    from features.bronze import rows_frame

    documents = list(documents)
    figures = [figure for document in documents for figure in document.figures]
    lake.replace_parts(
        DOCUMENTS, rows_frame(spark, DOCUMENTS, (document.card for document in documents)), "source_id"
    )
    return lake.replace_parts(FIGURES, rows_frame(spark, FIGURES, figures), "source_id")


def _validated(settings: Settings, lake: Lake, spark: SparkSession) -> list[Written]:
    from expectations.gate import findings_of
    from expectations.laws import MEASUREMENT_LAWS, RESIDUAL_LAWS
    from expectations.summary import write_summary
    from features.silver import interpreted, split
    from twin.app.calibration import calibrate_lake

    figures = lake.spark(FIGURES, spark)
    candidates = interpreted(figures).persist()
    findings = (
        findings_of(settings, FIGURES, figures, ())
        .unionByName(findings_of(settings, MEASUREMENTS, candidates, MEASUREMENT_LAWS))
        .dropDuplicates(list(FINDINGS.key))  # columns that both tables have are checked in both
    )
    trusted, quarantined = split(candidates, findings)
    written = [lake.replace(QUARANTINE, quarantined), lake.replace(MEASUREMENTS, trusted)]
    candidates.unpersist()
    written += calibrate_lake(lake, spark)
    residuals = findings_of(settings, RESIDUALS, lake.spark(RESIDUALS, spark), RESIDUAL_LAWS)
    written.append(lake.replace(FINDINGS, findings.unionByName(residuals)))
    write_summary(settings, lake)
    return written


def _event(written: Written) -> dict[str, Any]:
    return {
        "table": written.table,
        "version": written.version,
        "rows": written.rows,
        "fingerprint": written.fingerprint,
        "changed": written.changed,
        "expectations": written.expectations,
    }
