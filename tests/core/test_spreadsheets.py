"""Formulas that come in as texts go out as texts, and come back as they were."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.core.spreadsheets import bare, bared, shielded, shielded_frame, shielded_table

_SIGNS = "'=+-@\t\r\n \u00a0\u3000\ufeff＝＋－＠﹦\"0.5eE,;a"
TEXTS = st.one_of(st.text(), st.text(_SIGNS, max_size=6))


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+cmd|' /C calc'!A0",
        "-2+3",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\tharmless",
        " =1",
        "\u00a0\u3000=1",
        "\ufeff@x",
        "＝1+1",
        "＠x",
        "－x",
        "-",
        "--1",
        "+5 %",
        "'=1",
    ],
)
def test_what_a_spreadsheet_would_run_gets_an_apostrophe(text):
    assert shielded(text) == f"'{text}"
    assert bared(shielded(text)) == text


@pytest.mark.parametrize(
    "text", ["", "a=1", "5", "-5", "+5.25e-3", "-.5", "'quoted'", "o'clock", "–5", "2-1", "'-5"]
)
def test_other_texts_and_numbers_stay_as_they_are(text):
    assert shielded(text) == text
    assert bared(text) == text


@given(TEXTS)
def test_every_text_comes_back(text):
    assert bared(shielded(text)) == text


@given(st.lists(st.one_of(st.none(), TEXTS)))
def test_a_column_is_shielded_like_its_cells(texts):
    table = pa.table(
        {"text": pa.array(texts, pa.string()), "number": pa.array(range(len(texts)), pa.int64())}
    )
    found = shielded_table(table)
    assert found["text"].to_pylist() == [None if text is None else shielded(text) for text in texts]
    assert found["number"] == table["number"]
    read = found["text"].to_numpy(zero_copy_only=False)
    bare(read)
    assert list(read) == texts


def test_numbers_of_a_frame_stay_numbers():
    frame = pd.DataFrame({"id": ["=1", "b"], "value": [-1.5, 2.0], "mixed": [-1, "-x"]})
    found = shielded_frame(frame)
    assert found.to_dict("list") == {"id": ["'=1", "b"], "value": [-1.5, 2.0], "mixed": [-1, "'-x"]}
