"""What comes from outside, read within bounds: files, text, YAML and JSON that anybody may have written.

Everything that a person or another program hands us goes through here: it is read, or `BadInput` says in a
sentence why not. How large a file may be is for the caller to say, who knows what it is for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NoReturn

import yaml

# a configuration is flat, prices have two levels, a harness' results about five
_MOST_LEVELS = 32
# 2**63 has nineteen digits: what is longer fits into no column
_MOST_DIGITS = 40
_MB = 2**20


class BadInput(Exception):
    """The input cannot be read, and why; `line` where that is known, `cut` if it ends in the middle."""

    def __init__(self, reason: str, line: int = 1, cut: bool = False) -> None:
        super().__init__(reason)
        self.line = line
        self.cut = cut


def read_bytes(path: Path, most: int) -> bytes:
    """A whole file of at most so many bytes; one that grows meanwhile is not followed."""
    try:
        if not path.is_file():
            raise BadInput(f"{path} does not exist or is no file")
        with path.open("rb") as file:
            raw = file.read(most + 1)
        if len(raw) > most:
            size = path.stat().st_size
            raise BadInput(f"{path.name} has {_size(size)}; at most {_size(most)} are read")
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return raw


def text_of(name: str, raw: bytes) -> str:
    """The text of a file; raises for what is none."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{name} is not UTF-8 text (line {line}, byte {error.start})", line) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise BadInput(f"{name} is binary, not text (line {line})", line)
    return text


def read_text(path: Path, most: int) -> str:
    return text_of(path.name, read_bytes(path, most))


def yaml_of(text: str, only_texts: bool = False) -> Any:
    """Plain values, lists and mappings; with `only_texts`, version 9.10 stays what was written. What makes a
    short file a large value (aliases) or a value something else (tags), or says a thing twice, is refused."""
    try:
        return yaml.load(text, _PlainTexts if only_texts else _Plain)  # noqa: S506 both are safe, see below
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        told = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
        line = mark.line + 1 if mark else 1
        raise BadInput(f"line {line}: {' '.join(str(told).split())}", line) from error
    except RecursionError as error:
        raise BadInput("it is nested too deep") from error
    # a date like 2024-02-31, a number of thousands of digits
    except (ValueError, ArithmeticError) as error:
        raise BadInput(f"a value cannot be read: {error}") from error


def json_of(text: str | bytes, any_number: bool = False) -> Any:
    """Plain values. Numbers that JSON does not know or that no column could hold are refused, unless
    `any_number`: then the longest come as floating point, and NaN as itself."""
    try:
        plain = text if isinstance(text, str) else text.decode("utf-8-sig")
        return (_ANY_NUMBER if any_number else _FINITE).decode(plain)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated")
        said = "it ends in the middle" if cut else error.msg
        raise BadInput(f"line {error.lineno}: {said}", error.lineno, cut) from error
    except RecursionError as error:
        raise BadInput("it is nested too deep") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"it is not UTF-8 text (byte {error.start})") from error


class _Bounded:
    """For a loader of PyYAML: how deep it goes, and what it does not take."""

    _level = 0

    def compose_node(self: Any, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            _refuse_node("anchors and aliases are not read here", event)
        # `!` alone is what the parser notes for a value in quotes
        if getattr(event, "tag", None) not in (None, "!"):
            _refuse_node("tags are not read here", event)
        if self._level >= _MOST_LEVELS:
            _refuse_node("it is nested too deep", event)
        self._level += 1
        node = super().compose_node(parent, index)  # type: ignore[misc]
        self._level -= 1
        return node

    def construct_mapping(self: Any, node: Any, deep: bool = False) -> Any:
        seen: set[Any] = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if isinstance(name, Hashable) and name in seen:
                _refuse_node(f"{name!r} stands twice", key)
            seen |= {name} if isinstance(name, Hashable) else set()
        return super().construct_mapping(node, deep)  # type: ignore[misc]


class _Plain(_Bounded, yaml.SafeLoader):
    pass


class _PlainTexts(_Bounded, yaml.BaseLoader):
    pass


def _refuse_node(reason: str, place: Any) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=reason, problem_mark=place.start_mark)


def _no_number(text: str) -> NoReturn:
    raise BadInput(f"{text[:_MOST_DIGITS]} is not a number")


def _whole(text: str) -> int:
    return int(text) if len(text) <= _MOST_DIGITS else _no_number(text)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


_FINITE = json.JSONDecoder(parse_int=_whole, parse_float=_finite, parse_constant=_no_number)
_ANY_NUMBER = json.JSONDecoder(parse_int=lambda text: int(text) if len(text) <= _MOST_DIGITS else float(text))


def _size(size: int) -> str:
    for unit, of in (("MB", _MB), ("KB", 1024)):
        if size >= of:
            return f"{size / of:.0f} {unit}"
    return f"{size} bytes"
