"""The file that RabbitMQ PerfTest writes with `-o`: a row per interval, the unit of latencies in the header.

A row is a line: the tool quotes nothing. It has no summary and does not tell the options of the run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from twin.sources.documents import Refused
from twin.sources.harness.perftest import (
    LATENCIES,
    TOLD,
    UNIT,
    Floats,
    Places,
    divisor,
    places_by,
    samples,
)
from twin.sources.harness.recording import Lines, Recorded, Recording, RunFormat

_START = "id,time (s),published (msg/s)"
_ID, _TIME, _SENT, _RECEIVED = "id", "time (s)", "published (msg/s)", "received (msg/s)"
_LATENCY = re.compile(
    rf"(?P<name>{'|'.join(LATENCIES)})(?: p\.)? (?:(?P<of>consumer|confirm) )?latency \((?P<unit>{UNIT})\)"
)
_NUMBER = r"^\s*-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\s*$"
_BLOCK_BYTES = 64 * 2**20


def _recognises(first_lines: Sequence[str]) -> bool:
    return any(line.startswith(_START) for line in first_lines)


def _read(lines: Lines) -> Recording:
    if b"\r" in lines.raw:
        # a carriage return that stands alone would end a row, but no line
        lines = Lines(lines.name, lines.raw.replace(b"\r", b""))
    start = _start(lines)
    first = int(lines.line_of([start])[0])
    header = lines.at(first).split(",")
    rows, unread = _rows(lines, first, len(header))
    latencies = _latency_columns(header)
    wanted = [name for name in (_TIME, _SENT, _RECEIVED, *latencies) if name in header]
    if not len(rows):
        raise _unreadable(lines, first)
    table = _table(lines, start, header, [_ID, *wanted])
    columns, good = _numbers(table, wanted)
    # a file that was appended to has its header again
    headers = np.asarray(pc.equal(table[_ID].combine_chunks(), _ID))
    unread += int((~good & ~headers).sum())
    if not good.any():
        raise _unreadable(lines, first)
    kept = np.flatnonzero(good)
    ids = table[_ID].combine_chunks().take(pa.array(kept)).dictionary_encode().indices.to_numpy()
    runs = [_recorded(rows, columns, latencies, kept[places]) for places in places_by(ids.astype(np.int64))]
    return Recording(runs, unread)


def _unreadable(lines: Lines, header: int) -> Refused:
    return Refused(
        f"{lines.name} line {header}: no row below has numbers in the columns of this header; "
        "decimals behind a comma cannot be told from columns"
    )


def _start(lines: Lines) -> int:
    """Where the header stands; lines above it are comments."""
    at = 0 if lines.raw.startswith(_START.encode()) else lines.raw.find(f"\n{_START}".encode()) + 1
    if not lines.raw.startswith(_START.encode(), at):
        raise Refused(f"{lines.name} line 1: no header that starts with {_START}")
    return at


def _rows(lines: Lines, header: int, width: int) -> tuple[Places, int]:
    """Numbers of the lines below the header with as many cells, and how many lines have not."""
    below = lines.texts.slice(header)
    whole = np.asarray(pc.equal(pc.count_substring(below, ","), width - 1))
    others = below.filter(pa.array(~whole))
    unread = pc.sum(pc.invert(pc.match_substring_regex(others, r"^\s*(?:#|$)"))).as_py() or 0
    return np.flatnonzero(whole) + header + 1, unread


def _latency_columns(header: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Column here and divisor by the header's cells."""
    return {
        cell: (LATENCIES[match["name"]], divisor(match["unit"]))
        for cell in header
        if (match := _LATENCY.fullmatch(cell))
    }


def _table(lines: Lines, start: int, header: Sequence[str], wanted: Sequence[str]) -> pa.Table:
    # by their places: a name may stand there twice
    places = [str(at) for at in range(len(header))]
    asked = [str(header.index(name)) for name in wanted]
    table = pa_csv.read_csv(
        pa.BufferReader(pa.py_buffer(lines.raw).slice(start)),
        read_options=pa_csv.ReadOptions(
            use_threads=False, block_size=_BLOCK_BYTES, skip_rows=1, column_names=places
        ),
        # those rows are counted by their commas
        parse_options=pa_csv.ParseOptions(quote_char=False, invalid_row_handler=lambda _row: "skip"),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(places, pa.string()), include_columns=asked
        ),
    )
    return table.rename_columns(list(wanted))


def _numbers(table: pa.Table, names: Sequence[str]) -> tuple[dict[str, Floats], npt.NDArray[np.bool_]]:
    """Columns with NaN for empty cells, and the rows that have nothing but numbers in them."""
    columns: dict[str, Floats] = {}
    good = np.ones(len(table), dtype=bool)
    for name in names:
        cells = table[name].combine_chunks()
        given = pc.if_else(pc.equal(cells, ""), None, cells)
        try:
            numbers = given.cast(pa.float64())
        except pa.ArrowInvalid:
            is_number = pc.match_substring_regex(given, _NUMBER)
            good &= np.asarray(pc.fill_null(is_number, True))
            numbers = pc.utf8_trim_whitespace(pc.if_else(is_number, given, None)).cast(pa.float64())
        columns[name] = numbers.to_numpy(zero_copy_only=False)
    return columns, good & ~np.isnan(columns[_TIME])


def _recorded(
    rows: Places, columns: Mapping[str, Floats], latencies: Mapping[str, tuple[str, int]], places: Places
) -> Recorded:
    mine = {name: values[places] for name, values in columns.items()}
    nothing = np.full(len(places), np.nan)
    return Recorded(
        line=int(rows[places[0]]),
        samples=samples(
            rows[places],
            mine[_TIME],
            mine.get(_RECEIVED, nothing),
            mine.get(_SENT, nothing),
            _latencies(mine, latencies),
        ),
        told=TOLD,
    )


def _latencies(mine: Mapping[str, Floats], latencies: Mapping[str, tuple[str, int]]) -> dict[str, Floats]:
    """Times until the receipt; those until a confirm where nobody receives."""
    found: dict[str, Floats] = {}
    for until_confirm in (False, True):
        found = {
            column: mine[cell] / by
            for cell, (column, by) in latencies.items()
            if (" confirm " in cell) == until_confirm
        }
        if any(not np.isnan(values).all() for values in found.values()):
            break
    return found


FORMAT = RunFormat(name="perftest-csv", suffixes=(".csv",), recognises=_recognises, read=_read)
