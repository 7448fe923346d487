"""The steps that DAG tasks and commands call, in the order of the data flow.

Each step starts at most one Spark session, may be run twice with the same result, and returns what an
asset event should carry. Steps that change several tables hold the lake's lock while they do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from twin.app.archiving import Taken, take_runs, tidy
from twin.app.freshness import is_current, remember
from twin.app.ingesting import into_bronze, write_bronze
from twin.app.journal import noted
from twin.app.landing import Landing
from twin.app.predicting import answer_file
from twin.app.predictors import asked
from twin.app.requests import BadRequestFile
from twin.core.prediction import THROUGHPUT
from twin.core.settings import Settings
from twin.core.tables import (
    FIGURES,
    FINDINGS,
    FLOW_FEATURES,
    HARDWARE_FEATURES,
    MEASUREMENTS,
    QUARANTINE,
    RESIDUALS,
    RUNS,
    TRAINING_SET,
)
from twin.sources.documents import ReadDocument

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from features.lake import Lake, Written

_Asked = ParamSpec("_Asked")
_Result = TypeVar("_Result")

_LOG = logging.getLogger(__name__)
_AT_LEAST_EVERY = timedelta(days=7)


class NothingToDo(Exception):
    """What a step would make is there already, or there is nothing to make it of."""


def _step(
    work: Callable[Concatenate[Settings, _Asked], _Result],
) -> Callable[Concatenate[Settings, _Asked], _Result]:
    """The journal has a line about every try of it."""

    @wraps(work)
    def step(settings: Settings, /, *args: _Asked.args, **kwargs: _Asked.kwargs) -> _Result:
        with noted(settings, work.__name__, idle=NothingToDo) as entry:
            result = work(settings, *args, **kwargs)
            entry.figures = result
            return result

    return step


@_step
def ingest_files(settings: Settings, staged: Iterable[str], library: bool) -> dict[str, Any]:
    """Files that were read, and the library of reports if it is asked for, into bronze."""
    staged = list(staged)
    if not staged and not library:
        raise NothingToDo("no file waits in the inbox")
    return _event(write_bronze(settings, staged, library))


@_step
def ingest_runs(settings: Settings) -> dict[str, Any]:
    """Every file of harness runs that waits in the inbox: samples and runs. One that cannot be read is
    refused, the others are taken. Then samples are put together, and old ones removed where that is set."""
    from features.lake import Lake
    from features.session import running_spark

    landing = Landing(settings)
    landing.open()
    waiting = {str(landing.path(name)): landing.arrival(name) for name in landing.waiting("runs")}
    if not waiting:
        raise NothingToDo("no file of runs waits in the inbox")
    lake = Lake(settings)
    with running_spark(settings, "runs") as spark, lake.exclusive():
        taken = take_runs(settings, lake, spark, [Path(path) for path in waiting])
        tidied = tidy(lake, settings.keep_samples_months)
    for path, arrival in waiting.items():
        if path in taken.refused:
            _LOG.warning("refused %s: %s", arrival.name, taken.refused[path])
            landing.refuse(arrival, taken.refused[path])
        else:
            landing.done(arrival)
    if not taken.runs:
        raise NothingToDo(f"{len(taken.known)} files are known already, {len(taken.refused)} were refused")
    return {**asdict(taken), **tidied}


@_step
def ingest(
    settings: Settings,
    documents: Sequence[ReadDocument],
    runs: Sequence[Path] = (),
    source: str | None = None,
) -> tuple[dict[str, dict[str, Any]], Taken]:
    """Documents and files of runs into bronze, and all of it validated into silver."""
    from expectations.summary import write_summary
    from features.lake import Lake
    from features.session import running_spark

    lake = Lake(settings)
    taken = Taken()
    with running_spark(settings, "ingest") as spark, lake.exclusive():
        if runs:
            taken = take_runs(settings, lake, spark, runs, source)
        written = [into_bronze(lake, spark, documents)] if documents else []
        if written or taken.runs:
            written += _validated(settings, lake, spark)
    if written:
        write_summary(settings, lake, Landing(settings).refusals())
    return {one.table: _event(one) for one in written}, taken


@_step
def build_features(settings: Settings, anew: bool = False) -> dict[str, dict[str, Any]]:
    """Bronze figures validated into silver, and silver into feature tables; `anew` even if nothing changed.
    Returns what happened to the findings and to the training set."""
    from expectations.gate import verdict_of
    from expectations.leakage import TRAINING_LAWS
    from features.feature_tables import flow_features, hardware_features, training_set
    from features.lake import Lake
    from features.session import running_spark

    lake = Lake(settings)
    with lake.exclusive():
        if is_current(settings, lake) and not anew:
            raise NothingToDo("figures and code are those that the tables were made of")
        with running_spark(settings, "build_features") as spark:
            _validated(settings, lake, spark)
            measurements = lake.spark(MEASUREMENTS, spark)
            lake.replace(HARDWARE_FEATURES, hardware_features(measurements))
            lake.replace(FLOW_FEATURES, flow_features(measurements))
            hardware, flows = lake.spark(HARDWARE_FEATURES, spark), lake.spark(FLOW_FEATURES, spark)
            rows = training_set(measurements, hardware, flows).persist()
            verdict = verdict_of(settings, TRAINING_SET, rows, TRAINING_LAWS)
            written = lake.replace(TRAINING_SET, rows, verdict)
        remember(settings, lake)
    return {
        FINDINGS.name: _event(lake.written(FINDINGS)) | {"sources": _told_quality(settings)},
        TRAINING_SET.name: _event(written),
    }


@_step
def quality_report(settings: Settings) -> dict[str, Any]:
    """The page in front of the Data Docs, with the files that were refused; the book; and their figures."""
    from expectations.summary import summary_page, write_summary
    from features.lake import Lake, NoSuchTable
    from twin.app.book.building import write_book

    refused = Landing(settings).refusals()
    try:
        write_summary(settings, Lake(settings), refused)
        book = write_book(settings, doing=_LOG.info)
    except NoSuchTable as error:
        raise NothingToDo(f"nothing has been validated yet: {error}") from error
    for name, reason in refused.items():
        _LOG.warning("refused %s: %s", name, reason)
    return {
        "page": str(summary_page(settings)),
        "book": asdict(book),
        "refused": refused,
        "sources": _told_quality(settings),
    }


def training_due(settings: Settings, now: datetime | None = None) -> str:
    """Why to train now; raises if it is too early or there is nothing new to learn."""
    from features.lake import NoSuchTable
    from training.registry import Registry
    from training.training import training_key

    try:
        key = training_key(settings)
    except NoSuchTable as error:
        raise NothingToDo(f"there is nothing to learn from yet: {error}") from error
    newest = Registry(settings).newest()
    if newest is None:
        return "nothing has been trained yet"
    since = (now or datetime.now(UTC)) - datetime.fromtimestamp(newest.creation_timestamp / 1000, UTC)
    if since >= _AT_LEAST_EVERY:
        return f"the last training was {since.days} days ago"
    if Registry(settings).with_key(key) is not None:
        raise NothingToDo(f"version {newest.version} has learned from these figures with this code")
    if since < timedelta(hours=settings.train_every_h):
        hours = since.total_seconds() / 3600
        raise NothingToDo(
            f"the last training was {hours:.1f} hours ago; the next may start by itself after "
            f"{settings.train_every_h:.0f}"
        )
    return "figures or code have changed"


@_step
def train_models(settings: Settings, where: str | None = None, tune: bool = False) -> dict[str, Any]:
    from training.training import NothingToLearn, headline, train

    try:
        trained = train(settings, where, tune, told=_LOG.info)
    except NothingToLearn as error:
        raise NothingToDo(str(error)) from error
    if not trained.changed:
        raise NothingToDo(f"version {trained.version} was trained on the same figures with the same code")
    if not trained.champion:
        _LOG.warning("version %s was not promoted: %s", trained.version, trained.reason)
    return {
        "version": trained.version,
        "champion": trained.champion,
        "reason": trained.reason,
        **headline(trained.scores),
    }


@_step
def tidy_home(settings: Settings) -> dict[str, int]:
    """What nothing needs any more goes, by the settings."""
    from twin.app import tidying

    return tidying.tidy_home(settings, tidying.Keep.of(settings))


@_step
def sync_live(settings: Settings, probes: int = 3) -> dict[str, Any]:
    """One period of every broker that is to be watched. Its event is that of a model: nothing follows from a
    period in which none was registered."""
    from training.registry import NoChampion
    from twin.app.harnessing import chosen
    from twin.app.synchronising import Watch, synchronise

    if not settings.sync_brokers:
        raise NothingToDo("TWIN_SYNC_BROKERS names no broker")
    brokers = chosen(["put_get"], settings.sync_brokers, "quick", None).brokers
    policy: Any = settings.sync_policy
    try:
        reports = [
            synchronise(settings, Watch(name, address, probes, policy)) for name, address in brokers.items()
        ]
    except NoChampion as error:
        raise NothingToDo(f"there is nothing to compare with yet: {error}") from error
    for one in reports:
        _LOG.log(
            logging.WARNING if one.status == "diverged" else logging.INFO, "%s: %s", one.broker, one.message
        )
    if not any(one.version for one in reports):
        raise NothingToDo("; ".join(f"{one.broker}: {one.message}" for one in reports))
    return {"version": str(reports[-1].version), "reports": [one.told() for one in reports]}


@_step
def answer_requests(settings: Settings) -> dict[str, Any]:
    """Every request file that waits in the inbox, answered into `answers`. A file that cannot be read is
    refused; the others are answered."""
    from training.registry import NoChampion

    landing = Landing(settings)
    landing.open()
    waiting = landing.waiting("requests")
    if not waiting:
        raise NothingToDo("no request waits in the inbox")
    try:
        who = asked(settings, "hybrid", THROUGHPUT)
    except NoChampion as error:
        raise NothingToDo(f"{len(waiting)} request files wait for a model: {error}") from error
    folder = settings.folder("answers")
    answered, refused = [], 0
    for name in waiting:
        arrival = landing.arrival(name)
        out = folder / landing.lasting_name(arrival)
        try:
            answered.append(answer_file(landing.path(name), out, settings, lambda: who))
        except BadRequestFile as error:
            _LOG.warning("refused %s: %s", name, error)
            landing.refuse(arrival, str(error))
            refused += 1
        else:
            landing.done(arrival)
    return {
        "files": len(answered),
        "refused": refused,
        "answers": sum(one.answered for one in answered),
        "excuses": sum(one.excused for one in answered),
        "rejects": sum(one.rejected for one in answered),
    }


def _validated(settings: Settings, lake: Lake, spark: SparkSession) -> list[Written]:
    from pyspark.sql import DataFrame

    from expectations.gate import findings_of
    from expectations.laws import MEASUREMENT_LAWS, RESIDUAL_LAWS
    from expectations.run_laws import RUN_LAWS
    from expectations.suites import own_rules
    from features.lake import NoSuchTable
    from features.silver import interpreted, measured, split
    from twin.app.calibration import calibrate_lake

    found, meant = [], []
    # what a run shares with its measurements is checked there
    parts = ((FIGURES, (), None, interpreted), (RUNS, RUN_LAWS, own_rules(RUNS), measured))
    for table, laws, rules, meaning in parts:
        try:
            rows = lake.spark(table, spark)
        except NoSuchTable:
            continue
        found.append(findings_of(settings, table, rows, laws, rules))
        meant.append(meaning(rows))
    candidates = reduce(DataFrame.unionByName, meant).persist()
    found.append(findings_of(settings, MEASUREMENTS, candidates, MEASUREMENT_LAWS))
    # columns that several tables have are checked in each
    findings = reduce(DataFrame.unionByName, found).dropDuplicates(list(FINDINGS.key))
    trusted, quarantined = split(candidates, findings)
    written = [lake.replace(QUARANTINE, quarantined), lake.replace(MEASUREMENTS, trusted)]
    candidates.unpersist()
    written += calibrate_lake(lake, spark)
    residuals = findings_of(settings, RESIDUALS, lake.spark(RESIDUALS, spark), RESIDUAL_LAWS)
    written.append(lake.replace(FINDINGS, findings.unionByName(residuals)))
    return written


def _told_quality(settings: Settings) -> dict[str, dict[str, int]]:
    """Per source, how many figures are trusted, quarantined, warned of; a run's log says where to look."""
    from expectations.summary import counts_by_source
    from features.lake import Lake

    counts = counts_by_source(Lake(settings))
    for source_id, count in counts.items():
        if count["quarantined"]:
            _LOG.warning(
                "%s: %d of %d figures are in quarantine; `twin quality` names them and why",
                source_id,
                count["quarantined"],
                count["quarantined"] + count["trusted"],
            )
    return counts


def _event(written: Written) -> dict[str, Any]:
    return {
        "table": written.table,
        "version": written.version,
        "rows": written.rows,
        "fingerprint": written.fingerprint,
        "changed": written.changed,
        "expectations": written.expectations,
    }
