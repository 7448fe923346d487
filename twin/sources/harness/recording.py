"""What a file of interval samples tells, whatever tool wrote it. By the column: such files are long."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from twin.core.runs import Loop


@dataclass(frozen=True)
class SummaryFigure:
    """A figure that stands in a run's summary."""

    line: int
    header: str
    printed: str
    # of `twin/core/metrics.py`; None for what nobody asks for
    metric: str | None = None
    # in the metric's unit; None for what is no number
    value: float | None = None


@dataclass(frozen=True)
class Recorded:
    """One run as its file tells it."""

    line: int
    # columns of a sample that the tool prints, `line` always among them, in the order of the lines
    samples: pa.Table
    # flat configuration columns as texts
    told: Mapping[str, str] = field(default_factory=dict)
    loop: Loop = "unknown"
    requested_msgs_per_s: float | None = None
    summary: Sequence[SummaryFigure] = ()
    # a day like 2026-11-16, where the file says it
    measured_at: str | None = None
    # why the run cannot be used although it was read
    problem: str | None = None


@dataclass(frozen=True)
class Recording:
    runs: Sequence[Recorded]
    # lines, not counting empty ones, that belong to nothing
    unread_lines: int = 0


class Lines:
    """A text by lines, each with its line feed; the characters are not copied."""

    def __init__(self, name: str, raw: bytes) -> None:
        self.name = name
        self.raw = raw

    @cached_property
    def texts(self) -> pa.StringArray:
        return pa.StringArray.from_buffers(
            len(self._ends),
            pa.py_buffer(np.concatenate([[0], self._ends]).astype(np.int32)),
            pa.py_buffer(self.raw),
        )

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        ends = np.flatnonzero(np.frombuffer(self.raw, dtype=np.uint8) == ord("\n")) + 1
        return ends if self.raw.endswith(b"\n") or not self.raw else np.append(ends, len(self.raw))

    def __len__(self) -> int:
        return len(self._ends)

    def at(self, line: int) -> str:
        """A line by its number from 1, without its end."""
        start = self._ends[line - 2] if line > 1 else 0
        return self.raw[start : self._ends[line - 1]].decode().rstrip("\r\n")

    def line_of(self, places: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Numbers of the lines that bytes at these places stand in."""
        return np.searchsorted(self._ends, np.asarray(places), side="right") + 1


@dataclass(frozen=True)
class RunFormat:
    """One kind of file with interval samples."""

    # goes into tables as `tool`, so it never changes
    name: str
    suffixes: tuple[str, ...]
    # by the first lines of a file
    recognises: Callable[[Sequence[str]], bool]
    # raises Refused where no run could be read
    read: Callable[[Lines], Recording]
