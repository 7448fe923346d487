"""Texts on their way into a CSV file and back, so that no spreadsheet takes one for a formula.

A spreadsheet runs what begins like a formula, whoever wrote it: a request's id comes from a stranger. Such a
text gets an apostrophe in front, which spreadsheets take for "this is text". So that reading takes it off
exactly where it was put, a text that begins with apostrophes and then like a formula gets one more. Plain
numbers are left alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from twin.core.columns import Texts

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_MARK = "'"
# Characters by name, for two dialects of patterns: Python's, and Arrow's, whose \s knows fewer.
# A spreadsheet passes over these before it looks.
_PASSED_OVER = "\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff"
# Also as wide and as small forms, which input methods write and some spreadsheets read.
_BEGINNING = "=+@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\\-"
_FORMULA = rf"\A'*(?:[{_PASSED_OVER}]*[{_BEGINNING}]|[\t\r])"
_NUMBER = r"\A'*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_IS_FORMULA, _IS_NUMBER = re.compile(_FORMULA), re.compile(rf"{_NUMBER}\Z")


def shielded(text: str) -> str:
    """As it goes into a file."""
    return _MARK + text if _tempts(text) else text


def bared(text: str) -> str:
    """As it was before it went into a file."""
    return text[1:] if text.startswith(_MARK) and _tempts(text[1:]) else text


def bare(texts: Texts) -> None:
    """Cells of a column that were read, in place; most columns have no apostrophe at all."""
    if _MARK in "".join(filter(None, texts)):
        texts[:] = [bared(text) if text else text for text in texts]


def shielded_table(table: pa.Table) -> pa.Table:
    """All text columns at once: a batch has millions of cells."""
    import pyarrow as pa
    from pyarrow import compute

    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            cells = table.column(at)
            tempting = compute.and_not(
                compute.match_substring_regex(cells, _FORMULA),
                compute.match_substring_regex(cells, rf"{_NUMBER}\z"),
            )
            if compute.any(tempting).as_py():
                marked = compute.binary_join_element_wise(pa.scalar(_MARK, field.type), cells, "")
                table = table.set_column(at, field, compute.if_else(tempting, marked, cells))
    return table


def shielded_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """A small frame of pandas, whose columns of objects may hold anything."""
    texts = frame.select_dtypes(["object", "string"])
    return frame.assign(
        **{
            str(name): cells.map(lambda cell: shielded(cell) if isinstance(cell, str) else cell)
            for name, cells in texts.items()
        }
    )


def _tempts(text: str) -> bool:
    return bool(_IS_FORMULA.match(text)) and not _IS_NUMBER.match(text)
