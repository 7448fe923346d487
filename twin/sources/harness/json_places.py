"""JSON whose values know where they stand in their file and which characters they are there."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from twin.core.outside import BadInput, json_of
from twin.sources.documents import Refused
from twin.sources.harness.recording import Lines

# far beyond any result file: each value of such a file is looked at
MOST_BYTES = 64 * 2**20
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]|[^\s\[\]{}:,"]+', re.DOTALL)


@dataclass(slots=True)
class Node:
    # first byte of the value
    at: int
    # that of its key, in an object
    key_at: int
    text: str
    # None for a plain value
    members: dict[str, Node] | None = None
    elements: list[Node] | None = None

    @property
    def number(self) -> float | None:
        """None also for what is no finite number; NaN may be printed as a text."""
        try:
            value = float(self.text.strip('"'))
        except ValueError:
            return None
        return value if math.isfinite(value) else None

    def get(self, key: str) -> Node | None:
        return (self.members or {}).get(key)

    def listed(self, key: str) -> list[Node]:
        """Elements of the array under a key; none where there is no array."""
        found = self.get(key)
        return found.elements or [] if found else []

    def plain(self) -> Iterator[tuple[str, Node]]:
        """Members that are no object and no array."""
        for key, node in (self.members or {}).items():
            if node.members is None and node.elements is None:
                yield key, node


def located(lines: Lines) -> Node:
    """The object that a file holds."""
    if len(lines.raw) > MOST_BYTES:
        size = f"{len(lines.raw) / 2**20:.0f} MB"
        raise Refused(f"{lines.name} has {size}; at most {MOST_BYTES / 2**20:.0f} MB of JSON are read")
    try:
        json_of(lines.raw, any_number=True)
    except BadInput as error:
        said = "the file ends in the middle" if error.cut else str(error).removeprefix(f"line {error.line}: ")
        raise Refused(f"{lines.name} line {error.line}: no JSON, {said}") from error
    root = _tree(lines.raw)
    if root.members is None:
        raise Refused(f"{lines.name} line 1: no JSON object")
    return root


def _tree(raw: bytes) -> Node:
    """Of a text that is known to be JSON, so commas and colons need not be looked at."""
    root = Node(0, 0, "", elements=[])
    above = [root]
    key: tuple[str, int] | None = None
    for token in _TOKEN.finditer(raw):
        at, text = token.start(), token[0]
        parent = above[-1]
        if text in b"]}":
            above.pop()
        elif parent.members is not None and key is None:
            key = (json.loads(text), at)
        else:
            node = Node(at, key[1] if key else at, text.decode())
            if parent.members is not None and key is not None:
                parent.members[key[0]] = node
            elif parent.elements is not None:
                parent.elements.append(node)
            key = None
            if text == b"{":
                node.members = {}
                above.append(node)
            elif text == b"[":
                node.elements = []
                above.append(node)
    return (root.elements or [root])[0]
