"""Files of harness runs into the lake: samples in bronze, what each run amounts to in silver."""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from twin.core.measurement import CataloguedDocument
from twin.core.settings import Settings
from twin.core.tables import DOCUMENTS, RUNS, SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from features.archive import Archived
    from features.lake import Lake

_LOG = logging.getLogger(__name__)
# so long a reader or an export that has begun can go on with the files of before
_KEEP_FILES_H = 24.0


@dataclass(frozen=True)
class Taken:
    """What became of some files."""

    runs: int = 0
    samples: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    # their content was there already, or came twice
    known: list[str] = field(default_factory=list)
    # what the expectations said of the samples
    expectations: str | None = None


def take_runs(
    settings: Settings, lake: Lake, spark: SparkSession, files: Sequence[Path], source: str | None = None
) -> Taken:
    """The lake's lock is held. Killed at any point, it is done again from the start with the same result."""
    from features.archive import read_archive
    from features.batches import append
    from features.bronze import rows_frame

    before = lake.columns(RUNS, "batch", "document_id", "document_sha256", "description_sha256")
    _undo_half_done(lake, {run["batch"] for run in before})
    distinct, twice = _distinct(files)
    batch = uuid.uuid4().hex
    contents = {(run["document_sha256"], run["description_sha256"]) for run in before}
    archived = read_archive(spark, lake.uri(SAMPLES), distinct, batch, contents, source)
    known = sorted([*archived.known, *map(str, twice)])
    if not len(archived.runs):
        return Taken(refused=dict(archived.refused), known=known)
    new = {*archived.runs["document_sha256"].to_pylist()}
    _forget(lake, {run["document_id"] for run in before if run["document_sha256"] in new}, batch)
    verdict = None
    if archived.samples:
        append(lake, SAMPLES, archived.samples, batch)
        verdict = _verdict(settings, lake, spark, archived)
    lake.replace_parts(RUNS, spark.createDataFrame(archived.runs), "document_sha256")
    cards = _cards(lake, {*archived.runs["source_id"].to_pylist()})
    lake.replace_parts(DOCUMENTS, rows_frame(spark, DOCUMENTS, cards), "source_id")
    samples = sum(file.rows for file in archived.samples)
    return Taken(len(archived.runs), samples, dict(archived.refused), known, verdict)


def tidy(lake: Lake, keep_months: int | None = None, today: date | None = None) -> dict[str, int]:
    """Samples put together in fewer files; those measured more than so many months ago are removed. Their
    runs stay."""
    from features.batches import remove
    from features.upkeep import compact, forget

    removed = 0
    if keep_months is not None:
        day = today or date.today()
        months = day.year * 12 + day.month - 1 - keep_months
        removed = remove(lake, SAMPLES, f"month < '{months // 12:04}-{months % 12 + 1:02}'")
    return {
        "samples_removed": removed,
        "files_fewer": compact(lake, SAMPLES),
        "files_deleted": forget(lake, SAMPLES, _KEEP_FILES_H),
    }


def _undo_half_done(lake: Lake, finished: set[str]) -> None:
    """Runs are written after their samples: samples without are those of a work that was killed."""
    from features.batches import last_batch, undo

    batch = last_batch(lake, SAMPLES)
    if batch is not None and batch not in finished:
        _LOG.warning("samples of an ingestion that was not finished are taken back")
        undo(lake, SAMPLES, batch)


def _distinct(files: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Files without those that repeat another, in whatever folder and however described. Only files of one
    size can be the same: the others are not read for this."""
    by_size: dict[int, list[Path]] = defaultdict(list)
    for file in files:
        by_size[file.stat().st_size if file.is_file() else -1].append(file)
    distinct: list[Path] = []
    twice: list[Path] = []
    for size, same_size in by_size.items():
        seen: set[str] = set()
        for file in same_size:
            digest = _digest(file) if size >= 0 and len(same_size) > 1 else str(file)
            (twice if digest in seen else distinct).append(file)
            seen.add(digest)
    return distinct, twice


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _forget(lake: Lake, document_ids: set[str], batch: str) -> None:
    """A file that comes again with another description takes the place of what it gave before."""
    from features.batches import remove
    from features.predicates import one_of

    if document_ids:
        remove(lake, SAMPLES, one_of("document_id", sorted(document_ids)), batch)


def _cards(lake: Lake, sources: set[str]) -> list[CataloguedDocument]:
    """One for each source, whatever number of files it came in."""
    runs = lake.pandas(RUNS)
    return [
        CataloguedDocument(
            source_id=str(source_id),
            document_name=f"{mine['document_id'].nunique()} files of runs",
            document_sha256=_hash_of(mine["document_sha256"]),
            declared=True,
            figures=len(mine),
            landed=True,
            title=f"{', '.join(sorted({*mine['tool']}))}: {len(mine)} runs",
            document_published_at=mine["measured_at"].max(),
            machines="; ".join(sorted({*mine["machine"].dropna()})),
            products="; ".join(sorted({*mine["product"].dropna()})),
        )
        for source_id, mine in runs.groupby("source_id")
        if source_id in sources
    ]


def _hash_of(hashes: Iterable[str]) -> str:
    return hashlib.sha256("".join(sorted({*hashes})).encode()).hexdigest()


def _verdict(settings: Settings, lake: Lake, spark: SparkSession, archived: Archived) -> str:
    """Of the new samples alone: those of before had theirs. Columns are judged by their least and greatest
    values, which is as exact as by all of them and takes as long for a million as for a thousand."""
    from pyarrow import compute

    from expectations.gate import PASSED, verdict_of
    from expectations.run_laws import NEW_SAMPLES, sample_laws
    from features.footers import extremes
    from features.schemas import spark_schema

    told = int(compute.sum(archived.runs["samples"]).as_py() or 0)
    lake.spark_files(SAMPLES, spark, archived.samples).createOrReplaceTempView(NEW_SAMPLES)
    rows = spark.createDataFrame(extremes(lake, SAMPLES, archived.samples), spark_schema(SAMPLES))
    verdict = verdict_of(settings, SAMPLES, rows, sample_laws(told))
    if verdict != PASSED:
        _LOG.warning("the samples of this ingestion: %s; their Data Docs tell more", verdict)
    return verdict
