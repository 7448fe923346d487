"""Files into bronze: found, read one by one without Spark, and written together.

What a file gave is staged in the home, so that one file that cannot be read does not keep the others, and a
write that is killed is repeated without reading again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from twin.app.landing import Arrival, Landing
from twin.core.settings import Settings
from twin.core.tables import DOCUMENTS, FIGURES
from twin.sources.documents import ReadDocument, Refused, shipped_documents
from twin.sources.files import Kind, files_in, kind_of, read_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from features.lake import Lake, Written


@dataclass(frozen=True)
class Found:
    """A file to read: a name in the inbox, or a path of the library of documents."""

    file: str
    landed: bool


@dataclass(frozen=True)
class Staged:
    """What became of a file that was read."""

    document: ReadDocument
    arrival: Arrival | None


_LOG = logging.getLogger(__name__)
_STAGED = TypeAdapter(Staged)


def files_to_read(settings: Settings, kind: Kind) -> list[Found]:
    """What waits in the inbox; and for reports, the documents that `TWIN_REPORTS_DIR` has."""
    landing = Landing(settings)
    landing.open()
    found = [Found(name, landed=True) for name in landing.waiting(kind)]
    if kind == "report" and settings.reports:
        library = [path for path in files_in([settings.reports]) if kind_of(path) == kind]
        found += [Found(str(path), landed=False) for path in library]
    return found


def read_and_stage(settings: Settings, found: Found) -> dict[str, Any]:
    """One file; it is refused, moved and the reason written beside it, or it is staged. Returns where, and
    what was read from it."""
    landing = Landing(settings)
    arrival = landing.arrival(found.file) if found.landed else None
    path = landing.path(found.file) if found.landed else Path(found.file)
    try:
        document = read_file(path)
    except Refused as error:
        if arrival is not None:
            landing.refuse(arrival, str(error))
        raise
    if document.remark:
        _LOG.warning("%s: %s", path.name, document.remark)
    card = document.card.model_copy(update={"landed": found.landed})
    staged = Staged(replace(document, card=card), arrival)
    folder = settings.folder("staging")
    place = folder / f"{card.source_id}-{card.document_sha256[:8]}.json"
    place.write_bytes(_STAGED.dump_json(staged))
    return {
        "staged": str(place),
        "source_id": card.source_id,
        "figures": card.figures,
        "remark": document.remark,
    }


def write_bronze(settings: Settings, staged: Iterable[str], library: bool) -> Written:
    """Staged files into bronze, beneath them the `library` of reports that ship with the platform; then the
    files are processed. Where bronze has all of it already, Spark is not started."""
    from features.lake import Lake
    from features.session import running_spark

    # one that is gone was written by a try that was killed while it cleaned up
    places = [path for place in staged if (path := Path(place)).exists()]
    read = [_STAGED.validate_json(place.read_bytes()) for place in places]
    lake = Lake(settings)
    with lake.exclusive():
        documents = _chosen(lake, [one.document for one in read], library)
        if _is_there(lake, documents):
            written = lake.written(FIGURES)
        else:
            with running_spark(settings, "bronze") as spark:
                written = into_bronze(lake, spark, documents)
    landing = Landing(settings)
    for one in read:
        if one.arrival is None:
            continue
        if one.document in documents:
            landing.done(one.arrival)
        else:
            landing.refuse(one.arrival, f"another file that came with it is {one.document.card.source_id}")
    for place in places:
        place.unlink(missing_ok=True)
    return written


def into_bronze(lake: Lake, spark: SparkSession, documents: Iterable[ReadDocument]) -> Written:
    from features.bronze import rows_frame

    documents = list(documents)
    figures = [figure for document in documents for figure in document.figures]
    lake.replace_parts(
        DOCUMENTS, rows_frame(spark, DOCUMENTS, (document.card for document in documents)), "source_id"
    )
    return lake.replace_parts(FIGURES, rows_frame(spark, FIGURES, figures), "source_id")


def _chosen(lake: Lake, read: list[ReadDocument], library: bool) -> list[ReadDocument]:
    """A document for each source: one that landed goes before one of the library, and that before the figures
    that ship. What landed once is not replaced by the library."""
    shipped = shipped_documents() if library else []
    by_rank = [*shipped, *sorted(read, key=lambda document: document.card.landed)]
    landed = _landed_sources(lake)
    return list(
        {
            document.card.source_id: document
            for document in by_rank
            if document.card.landed or (document.card.declared and document.card.source_id not in landed)
        }.values()
    )


def _landed_sources(lake: Lake) -> set[str]:
    from features.lake import NoSuchTable

    try:
        cards = lake.arrow(DOCUMENTS).to_pylist()
    except NoSuchTable:
        return set()
    return {card["source_id"] for card in cards if card["landed"]}


def _is_there(lake: Lake, documents: list[ReadDocument]) -> bool:
    figures = [figure for document in documents for figure in document.figures]
    cards = [document.card for document in documents]
    return lake.holds(DOCUMENTS, cards, "source_id") and lake.holds(FIGURES, figures, "source_id")
