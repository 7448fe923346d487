"""The message that flows work on, in each format that a flow may read or write.

Two orders of four items: ten numbers, ten texts, ten amounts and a filler that makes the size, as in the
reports' conversions. Inside a flow it is a tree of texts. XML may describe itself (`generic_xml`); all other
formats follow a fixed description (`mrm_...`), by which every value is checked and converted.
"""

from __future__ import annotations

import struct

# whoever puts messages into a flow is our own driver
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar
from xml.etree.ElementTree import Element, ParseError, SubElement

from twin.core.workloads.broker import MessageFormat
from twin.harness.brokers.interface import NotOffered

# orders of the shop itself do not pass the filter and are not billed
SHOP = "Shop"
# no subscriber asks for a greater balance, and every sample has a greater one
GREATEST_LIMIT = 1000.0

_ORDERS, _ITEMS = 2, 4
_TEXT_BYTES = 12
_ORDER: dict[str, type] = {"Number": int, "Customer": str, "Balance": float}
_ITEM: dict[str, type] = {"Name": str, "Price": float, "Count": int}
_DESCRIPTION = [*[*_ORDER.items(), *[*_ITEM.items()] * _ITEMS] * _ORDERS, ("Filler", str)]
_NAMES = [name for name, _ in _DESCRIPTION]
_KINDS = [kind for _, kind in _DESCRIPTION]
_IN_RECORD = {int: "q", float: "d", str: f"{_TEXT_BYTES}s"}
# a structure of a program: no gaps, the filler is what comes after it
_RECORD = struct.Struct("<" + "".join(_IN_RECORD[kind] for kind in _KINDS[:-1]))
_TAGS = [f"{at:02d}" for at in range(1, len(_NAMES) + 1)]
_CUSTOMER = _NAMES.index("Customer")
# so much of an XML message is read before asking whether the field was in it
_LOOK_BYTES = 256

Value = int | float | str
T = TypeVar("T")


class BadMessage(ValueError):
    """A message that is not of the format that its flow reads, or a tree that does not go into a format."""


@dataclass(frozen=True)
class Format:
    parse: Callable[[bytes], Element]
    write: Callable[[Element], bytes]
    # of the first order, without reading what comes after it
    customer: Callable[[bytes], str]


def parse(name: MessageFormat, body: bytes) -> Element:
    return _read(name, format_of(name).parse, body)


def write(name: MessageFormat, tree: Element) -> bytes:
    return format_of(name).write(tree)


def first_customer(name: MessageFormat, body: bytes) -> str:
    return _read(name, format_of(name).customer, body)


def key_of(name: MessageFormat, body: bytes) -> int:
    """What tells one message from another: the number of its first order, or a checksum where nothing is
    parsed."""
    return zlib.crc32(body) if name == "none" else int(parse(name, body).findtext("Order/Number", "0"))


def sample(name: MessageFormat, message_bytes: int, number: int = 1) -> bytes:
    """A message of that size, or the smallest that has all fields; `number` tells samples apart. A flow that
    parses nothing gets plain bytes."""
    if name == "none":
        return str(number).encode().ljust(message_bytes, b"x")[:message_bytes]
    tree = tree_of(_sample_values(number))
    tree[-1].text = "x" * max(0, message_bytes - len(write(name, tree)))
    return write(name, tree)


def tree_of(values: Iterable[Value]) -> Element:
    """`values` in the order of the description."""
    left = map(str, values)
    root = Element("Orders")
    for _ in range(_ORDERS):
        order = SubElement(root, "Order")
        for name in _ORDER:
            SubElement(order, name).text = next(left)
        for _ in range(_ITEMS):
            item = SubElement(order, "Item")
            for name in _ITEM:
                SubElement(item, name).text = next(left)
    SubElement(root, "Filler").text = next(left)
    return root


def values_of(tree: Element) -> list[Value]:
    """In the order of the description, and of its types."""
    leaves = [one for one in tree.iter() if not len(one)]
    if [leaf.tag for leaf in leaves] != _NAMES:
        raise BadMessage("its fields are not those of the description")
    return [kind(leaf.text or "") for kind, leaf in zip(_KINDS, leaves, strict=True)]


def format_of(name: MessageFormat) -> Format:
    if name not in _FORMATS:
        raise NotOffered(f"flows here do not know the format {name}: choose one of {', '.join(_FORMATS)}")
    return _FORMATS[name]


def _read(name: MessageFormat, how: Callable[[bytes], T], body: bytes) -> T:
    try:
        return how(body)
    except (ValueError, ParseError, struct.error) as error:
        raise BadMessage(f"a message of {len(body)} bytes is not {name}: {error}") from None


def _sample_values(number: int) -> Iterable[Value]:
    for order in range(_ORDERS):
        # the last order is the shop's own
        yield from (number + order, SHOP if order else f"Customer{number % 10_000:04d}")
        yield GREATEST_LIMIT + number % 1000 + 0.25
        for item in range(_ITEMS):
            # one item of an order is a gift
            yield from (f"Article {item:04d}", 2.5 * item, 1 + (number + item) % 9)
    yield ""


def _parse_xml(body: bytes) -> Element:
    return ET.fromstring(body)  # noqa: S314


def _write_xml(tree: Element) -> bytes:
    return ET.tostring(tree, short_empty_elements=False)


def _customer_in_xml(body: bytes) -> str:
    parser: ET.XMLPullParser[Element] = ET.XMLPullParser(["end"])
    for start in range(0, len(body), _LOOK_BYTES):
        parser.feed(body[start : start + _LOOK_BYTES])
        for *_, element in parser.read_events():
            if isinstance(element, Element) and element.tag == "Customer":
                return element.text or ""
    raise BadMessage("it has no customer")


def _parse_described_xml(body: bytes) -> Element:
    return tree_of(values_of(_parse_xml(body)))


def _write_described_xml(tree: Element) -> bytes:
    return _write_xml(tree_of(values_of(tree)))


def _parse_record(body: bytes) -> Element:
    fields = _RECORD.unpack_from(body)
    return tree_of(
        [*(_text(one) if isinstance(one, bytes) else one for one in fields), _text(body[_RECORD.size :])]
    )


def _write_record(tree: Element) -> bytes:
    *fields, filler = values_of(tree)
    padded = (one.encode().ljust(_TEXT_BYTES) if isinstance(one, str) else one for one in fields)
    return _RECORD.pack(*padded) + str(filler).encode()


def _customer_in_record(body: bytes) -> str:
    return _text(struct.unpack_from(f"<q{_TEXT_BYTES}s", body)[_CUSTOMER])


def _text(field: bytes) -> str:
    return field.decode().rstrip(" ")


def _parse_tagged(body: bytes) -> Element:
    """Tags may come in any order."""
    found = dict(part.split(":", 1) for part in body.decode().split("|"))
    if found.keys() != set(_TAGS):
        raise BadMessage("its tags are not those of the description")
    return tree_of(kind(found[tag]) for kind, tag in zip(_KINDS, _TAGS, strict=True))


def _write_tagged(tree: Element) -> bytes:
    return "|".join(f"{tag}:{value}" for tag, value in zip(_TAGS, values_of(tree), strict=True)).encode()


def _customer_in_tagged(body: bytes) -> str:
    _, tag, rest = body.partition(f"|{_TAGS[_CUSTOMER]}:".encode())
    if not tag:
        raise BadMessage("it has no customer")
    return rest.partition(b"|")[0].decode()


_FORMATS: dict[MessageFormat, Format] = {
    "generic_xml": Format(_parse_xml, _write_xml, _customer_in_xml),
    "mrm_xml": Format(_parse_described_xml, _write_described_xml, _customer_in_xml),
    "mrm_cwf": Format(_parse_record, _write_record, _customer_in_record),
    "mrm_tds": Format(_parse_tagged, _write_tagged, _customer_in_tagged),
}
