"""Where a message goes when a flow is done with it: to a queue, to subscribers of a topic, to those whose
condition it meets, or to one label of a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from xml.etree.ElementTree import Element, SubElement

from twin.core.workloads.broker import MessageFormat
from twin.harness.brokers.interface import Message, Queue, Topic
from twin.harness.flow.formats import GREATEST_LIMIT, key_of, parse

# what subscribers of a flow's topic ask for
PUBLISHED = "orders"
# the header that tells which label a message took
LABEL = "label"

Output = Callable[[bytes, Mapping[str, str]], list[Message]]
Predicate = Callable[[Element], bool]


def to_queue(queue: Queue) -> Output:
    return lambda body, headers: [Message(queue, body, headers=headers)]


def to_topic(topic: Topic) -> Output:
    return lambda body, headers: [Message(topic, body, PUBLISHED, headers)]


def to_matching(subscribers: Sequence[Queue], format: MessageFormat) -> Output:
    """Every condition is looked at, as nobody knows which of them a message meets."""
    conditions = [
        (queue, partial(_has_balance, GREATEST_LIMIT * at / len(subscribers)))
        for at, queue in enumerate(subscribers, start=1)
    ]

    def output(body: bytes, headers: Mapping[str, str]) -> list[Message]:
        tree = parse(format, body)
        return [Message(queue, body, headers=headers) for queue, meets in conditions if meets(tree)]

    return output


def to_label(queue: Queue, destinations: int, format: MessageFormat) -> Output:
    """A list of labels is made for each message, as the compute node before such a node would, and its first
    entry is where the message goes."""

    def output(body: bytes, headers: Mapping[str, str]) -> list[Message]:
        listed = _destination_list(key_of(format, body), destinations)
        label = listed.findtext("RouterList/Destination/Label", "")
        return [Message(queue, body, headers={**headers, LABEL: label})]

    return output


def _destination_list(first: int, destinations: int) -> Element:
    root = Element("Destinations")
    listed = SubElement(root, "RouterList")
    for at in range(first, first + destinations):
        SubElement(SubElement(listed, "Destination"), "Label").text = f"label-{at % destinations}"
    return root


def _has_balance(limit: float, tree: Element) -> bool:
    return float(tree.findtext("Order/Balance", "0")) >= limit
