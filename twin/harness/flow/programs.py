"""What compute nodes do to a message's tree, after the programs that the reports print.

A node starts an output tree and runs its program on it, as often as the node repeats it; running it again
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal
from xml.etree.ElementTree import Element, SubElement

from twin.harness.flow.formats import SHOP, tree_of, values_of

Esql = Literal["none", "simple", "complex", "nested_select", "convert"]
TreeNode = Callable[[Element], Element]

# what a bill adds to a price
_WITH_TAX = 1.2


@dataclass(frozen=True)
class Program:
    # the output tree from the input tree
    start: Callable[[Element], Element]
    # reads the input, changes the output
    run: Callable[[Element, Element], None]


def copy_node(tree: Element) -> Element:
    return deepcopy(tree)


def compute_node(program: Program, repeats: int = 1) -> TreeNode:
    def node(tree: Element) -> Element:
        output = program.start(tree)
        for _ in range(repeats):
            program.run(tree, output)
        return output

    return node


def _set_a_field(_: Element, output: Element) -> None:
    _child(_child(output, "Order"), "Customer").text = "x"


def _set_a_path(_: Element, output: Element) -> None:
    """A list of components beside the orders, three values in each, from the items one by one."""
    path = _child(output, "ProcessingPath")
    for at, item in enumerate(output.iterfind("Order/Item")):
        component = _child(path, "Component", at)
        _child(component, "Name").text = item.findtext("Name")
        transport = _child(component, "Transport")
        transport.set("Kind", "A")
        _child(transport, "Queue").text = item.findtext("Count")


def _select_nested(tree: Element, output: Element) -> None:
    """A statement for each order that is not the shop's own, of its items that cost something, with a sum."""
    output[:] = [
        _statement(order) for order in tree.iterfind("Order") if order.findtext("Customer") != SHOP
    ]  # fmt: skip


def _statement(order: Element) -> Element:
    statement = Element("Statement", {"Kind": "monthly"})
    customer = SubElement(statement, "Customer")
    for name in ("Customer", "Balance"):
        SubElement(customer, name).text = order.findtext(name)
    items = [(item, float(item.findtext("Price", "0"))) for item in order.iterfind("Item")]
    purchases = SubElement(statement, "Purchases")
    for item, price in items:
        if price > 0:
            article = SubElement(purchases, "Article")
            SubElement(article, "Name").text = item.findtext("Name")
            SubElement(article, "Cost").text = str(price * _WITH_TAX)
            SubElement(article, "Count").text = item.findtext("Count")
    amount = SubElement(statement, "Amount", {"Currency": "EUR"})
    amount.text = str(sum(price * float(item.findtext("Count", "0")) * _WITH_TAX for item, price in items))
    return statement


def _move_fields(tree: Element, output: Element) -> None:
    """Field by field, each by its type."""
    output[:] = list(tree_of(values_of(tree)))


def _child(parent: Element, tag: str, at: int = 0) -> Element:
    """That child, made where it is missing."""
    there = parent.findall(tag)
    return there[at] if at < len(there) else SubElement(parent, tag)


def _empty(tree: Element) -> Element:
    return Element(tree.tag)


PROGRAMS: dict[Esql, Program] = {
    "simple": Program(deepcopy, _set_a_field),
    "complex": Program(deepcopy, _set_a_path),
    "nested_select": Program(_empty, _select_nested),
    "convert": Program(_empty, _move_fields),
}
