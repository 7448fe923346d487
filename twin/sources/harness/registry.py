"""Every harness format. A new one is a module and a line here; the first that recognises a file reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from twin.sources.harness import (
    cphtestp,
    measurements,
    mqcph,
    openmessaging,
    own,
    perfharness,
    perftest_csv,
    perftest_json,
    perftest_log,
)
from twin.sources.harness.format import Format
from twin.sources.harness.recording import RunFormat

# a row is a measurement
FORMATS: tuple[Format, ...] = (cphtestp.FORMAT, measurements.FORMAT)
# a line is an interval of a run; a line of PerfHarness has all that one of MQ-CPH has, and more
RUN_FORMATS: tuple[RunFormat, ...] = (
    perfharness.FORMAT,
    mqcph.FORMAT,
    perftest_log.FORMAT,
    perftest_csv.FORMAT,
    perftest_json.FORMAT,
    openmessaging.FORMAT,
    own.FORMAT,
)
_F = TypeVar("_F", Format, RunFormat)
BY_NAME: dict[str, Format] = {one.name: one for one in FORMATS}


def table_format(suffix: str, first_lines: Sequence[str]) -> Format | None:
    return _first(FORMATS, suffix, first_lines)


def run_format(suffix: str, first_lines: Sequence[str]) -> RunFormat | None:
    return _first(RUN_FORMATS, suffix, first_lines)


def suffixes_of(formats: Sequence[Format | RunFormat]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(suffix for one in formats for suffix in one.suffixes))


def _first(formats: Sequence[_F], suffix: str, first_lines: Sequence[str]) -> _F | None:
    return next(
        (one for one in formats if suffix.lower() in one.suffixes and one.recognises(first_lines)), None
    )
