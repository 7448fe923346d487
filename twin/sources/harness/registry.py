"""Every harness format. A new one is a module and a line here; the first that recognises a file reads it."""

from __future__ import annotations

from collections.abc import Sequence

from twin.sources.harness import cphtestp, measurements, mqcph, perfharness
from twin.sources.harness.format import Format

FORMATS: tuple[Format, ...] = (cphtestp.FORMAT, measurements.FORMAT, mqcph.FORMAT, perfharness.FORMAT)
BY_NAME: dict[str, Format] = {one.name: one for one in FORMATS}
SUFFIXES: tuple[str, ...] = tuple(dict.fromkeys(suffix for one in FORMATS for suffix in one.suffixes))


def recognised(suffix: str, first_lines: Sequence[str]) -> Format | None:
    return next(
        (one for one in FORMATS if suffix.lower() in one.suffixes and one.recognises(first_lines)), None
    )
