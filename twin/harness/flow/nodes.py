"""The nodes of a flow: what becomes of a message on its way. None is one that goes no further."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree.ElementTree import Element

from twin.core.workloads.live import LiveFlow
from twin.harness.flow.database import Rows
from twin.harness.flow.formats import SHOP, first_customer, key_of, parse, write
from twin.harness.flow.programs import PROGRAMS, TreeNode, compute_node, copy_node

Node = Callable[[bytes], bytes | None]


def passing(body: bytes) -> bytes:
    return body


def filtering(flow: LiveFlow) -> Node:
    def node(body: bytes) -> bytes | None:
        return body if first_customer(flow.input_format, body) != SHOP else None

    return node


def computing(flow: LiveFlow) -> Node:
    """Parsed once, written once, however many nodes work on the tree in between."""
    nodes = [*_copy_nodes(flow), *_compute_nodes(flow)]

    def node(body: bytes) -> bytes:
        return write(flow.output_format, _through(nodes, parse(flow.input_format, body)))

    return node


def ordering(flow: LiveFlow) -> Node:
    """Both branches get the same tree, the second when the first is done; what copies make leads nowhere."""
    first, second = _copy_nodes(flow), _compute_nodes(flow)

    def node(body: bytes) -> bytes:
        tree = parse(flow.input_format, body)
        _through(first, tree)
        return write(flow.output_format, _through(second, tree))

    return node


def mapping(flow: LiveFlow) -> Node:
    """A mapping is the conversion, drawn instead of written."""
    return computing(flow.model_copy(update={"esql": "convert", "compute_nodes": 1}))


def working_on_rows(flow: LiveFlow, rows: Rows) -> Node:
    operation = _OPERATIONS[flow.database_operation]

    def node(body: bytes) -> bytes:
        operation(rows, key_of(flow.input_format, body), body)
        return body

    return node


def _insert_delete(rows: Rows, key: int, content: bytes) -> None:
    rows.insert(key, content)
    rows.delete(key)


def _update(rows: Rows, key: int, content: bytes) -> None:
    rows.update(key, content)


def _read(rows: Rows, key: int, _: bytes) -> None:
    rows.read(key)


_OPERATIONS = {"insert_delete": _insert_delete, "update": _update, "read": _read}


def _copy_nodes(flow: LiveFlow) -> list[TreeNode]:
    return [copy_node] * flow.copy_nodes


def _compute_nodes(flow: LiveFlow) -> list[TreeNode]:
    if flow.esql == "none":
        return []
    return [compute_node(PROGRAMS[flow.esql], flow.program_repeats)] * flow.compute_nodes


def _through(nodes: list[TreeNode], tree: Element) -> Element:
    for node in nodes:
        tree = node(tree)
    return tree
