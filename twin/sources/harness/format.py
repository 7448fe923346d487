"""What a harness format provides: how its files are recognised and read, and what their columns mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from twin.core.checking import KNOWN
from twin.sources.document import Document
from twin.sources.harness.sidecar import Sidecar

# Keys that a row may have beside configuration columns: they say when, what, and with which other rows it is
# held out.
PUBLISHED_AT = "published_at"
METRIC = "metric"
EXAM_GROUP = "exam_group"


@dataclass(frozen=True)
class Cell:
    """A printed cell that is not a key."""

    column: int
    header: str
    printed: str
    # the format says what it measures
    meant: bool = False


@dataclass(frozen=True)
class HarnessRow:
    """One printed row: its cells, and the keys by which their configuration is known later on."""

    line: int
    cells: Sequence[Cell]
    keys: Mapping[str, str] = field(default_factory=dict)
    # why nothing can be made of it; such a row is kept as printed and means nothing
    problem: str | None = None


@dataclass(frozen=True)
class Format:
    """One kind of result file."""

    # the first part of `declared_as`: bronze rows are interpreted by it, so it never changes
    name: str
    suffixes: tuple[str, ...]
    # by the first lines of a file
    recognises: Callable[[Sequence[str]], bool]
    # raises Refused where not a single row could be understood
    rows: Callable[[Document, Sidecar], Iterator[HarnessRow]]
    # metrics by printed header; a file whose rows say what they measure has none
    metrics: Mapping[str, str] = field(default_factory=dict)
    # configuration columns by the printed headers of the key cells; others have the column's own name
    keys: Mapping[str, str] = field(default_factory=dict)
    # the experiment that the tool runs, where it runs but one
    family: str | None = None
    # the file alone does not say what was measured
    needs_sidecar: bool = False

    def metric(self, header: str, keys: Mapping[str, str]) -> str:
        return self.metrics.get(header) or keys[METRIC]

    def configuration(self, keys: Mapping[str, str]) -> dict[str, str]:
        """Flat configuration columns out of a row's keys."""
        named = {self.keys.get(name, name): value for name, value in keys.items()}
        told = {name: value for name, value in named.items() if name in KNOWN}
        return told | ({"family": self.family} if self.family else {})
