"""What anybody may have written is read within bounds, or told in a sentence."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.core.outside import BadInput, json_of, read_bytes, read_text, text_of, yaml_of


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: &x [1]\nb: *x", "line 1: anchors and aliases"),
        ("a: 1\na: 2", "line 2: 'a' stands twice"),
        ("x: {a: 1, a: 1}", "line 1: 'a' stands twice"),
        ("!!python/object/apply:os.system ['true']", "tags are not read"),
        ("a: !!int x", "tags are not read"),
        ("[" * 100, "nested too deep"),
        ("- " * 5000, "nested too deep"),
        ("a: 2024-02-31", "a value cannot be read"),
        (f"a: {'1' * 5000}", "a value cannot be read"),
        ("a: [1", "line 1: expected"),
        ("a: \x07", "line 1: special characters"),
        ("? [1]\n: 2", "unhashable"),
    ],
)
def test_yaml_that_is_refused(text, reason):
    with pytest.raises(BadInput, match=reason):
        yaml_of(text)


def test_an_alias_bomb_is_refused_unbuilt():
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with pytest.raises(BadInput, match="aliases"):
        yaml_of("\n".join(["a0: &a0 x", *levels]))


def test_plain_yaml_is_read():
    assert yaml_of("a: 1\nb: [x, 'y', \"z\"]\nc: {d: 2.5}\ne: true") == {
        "a": 1, "b": ["x", "y", "z"], "c": {"d": 2.5}, "e": True,
    }  # fmt: skip
    told = yaml_of("version: 9.10\nwhen: 2024-02-31", only_texts=True)
    assert told == {"version": "9.10", "when": "2024-02-31"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NaN", "is not a number"),
        ("[-Infinity]", "is not a number"),
        ("1e999", "is not a number"),
        ("9" * 5000, "is not a number"),
        ("[" * 100_000, "nested too deep"),
        ('{"a": ', "line 1: it ends in the middle"),
        ("{'a': 1}", "line 1: Expecting"),
        (b"\xff\xfe1\x00", "not UTF-8"),
    ],
)
def test_json_that_is_refused(text, reason):
    with pytest.raises(BadInput, match=reason):
        json_of(text)


_NUMBERS = st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False)
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(_VALUES)
def test_json_comes_back(value):
    assert json_of(json.dumps(value)) == value
    assert json_of(json.dumps(value, ensure_ascii=False).encode()) == value


def test_results_of_a_harness_may_have_any_number():
    assert json_of(f"[{'9' * 400}, NaN, 1e999]", any_number=True)[0] == float("inf")


def test_a_file_is_read_up_to_its_bound(tmp_path):
    file = tmp_path / "some.txt"
    file.write_bytes(b"x" * 2048)
    assert read_bytes(file, 2048) == b"x" * 2048
    with pytest.raises(BadInput, match=r"some.txt has 2 KB; at most 1 KB are read"):
        read_bytes(file, 1024)
    with pytest.raises(BadInput, match="does not exist or is no file"):
        read_bytes(tmp_path, 10)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="no file"):
        read_bytes(tmp_path / "pipe", 10)
    with pytest.raises(BadInput):
        read_bytes(tmp_path / "a\0b", 10)


def test_what_is_no_text_is_told_with_its_line(tmp_path):
    with pytest.raises(BadInput, match=r"x is binary, not text \(line 2\)"):
        text_of("x", b"a\n\0")
    file = tmp_path / "latin"
    file.write_bytes(b"a\n\xe9")
    with pytest.raises(BadInput, match=r"latin is not UTF-8 text \(line 2, byte 2\)"):
        read_text(file, 100)
