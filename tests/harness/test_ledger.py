from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from twin.harness.ledger import Ledger

SIZE = 64


def put(ledger, sender, count):
    """Bodies of messages that were put and acknowledged."""
    bodies = []
    for _ in range(count):
        bodies.append(ledger.put(sender, SIZE))
        ledger.acknowledge(sender)
    return bodies


def test_an_acknowledged_message_that_does_not_arrive_is_lost():
    ledger = Ledger(2)
    bodies = put(ledger, 1, 5)
    for body in (*bodies[:2], *bodies[3:]):
        ledger.take(body)
    assert (ledger.acknowledged, ledger.received, ledger.lost) == (5, 4, 1)
    assert ledger.some_lost() == [(1, 2)]
    assert ledger.take(bodies[2]) == (1, 2)
    assert ledger.lost == 0


def test_a_message_that_is_not_acknowledged_is_put_again_and_may_arrive_twice():
    ledger = Ledger(1)
    first = ledger.put(0, SIZE)
    again = ledger.put(0, SIZE)
    assert first == again
    ledger.acknowledge(0)
    assert [ledger.take(first), ledger.take(again)] == [(0, 0), None]
    assert (ledger.received, ledger.duplicated, ledger.lost) == (1, 1, 0)


def test_a_message_may_arrive_whose_acknowledgement_was_not_heard():
    ledger = Ledger(1)
    assert ledger.take(ledger.put(0, SIZE)) == (0, 0)
    assert (ledger.acknowledged, ledger.received, ledger.lost) == (0, 1, 0)


def test_what_nobody_has_put_is_told_apart():
    ledger, other = Ledger(1), Ledger(3)
    ledger.take(b"")
    ledger.take(b"something else altogether")
    ledger.take(other.put(2, SIZE))
    ledger.take(other.put(0, SIZE))
    assert (ledger.foreign, ledger.received) == (4, 0)


@given(st.lists(st.integers(0, 30)), st.integers(0, 31))
def test_arrivals_in_any_order_are_counted_as_a_set_would(numbers, acknowledged):
    ledger = Ledger(1)
    bodies = put(ledger, 0, 31)
    ledger._acknowledged[0] = acknowledged
    for number in numbers:
        ledger.take(bodies[number])
    missing = sorted(set(range(acknowledged)) - set(numbers))
    assert ledger.received == len(set(numbers))
    assert ledger.duplicated == len(numbers) - len(set(numbers))
    assert ledger.lost == len(missing)
    assert ledger.some_lost() == [(0, number) for number in missing[:10]]


def test_memory_does_not_grow_with_messages_and_hardly_after_a_loss():
    ledger = Ledger(1)
    for body in put(ledger, 0, 10_000):
        ledger.take(body)
    arrived = ledger._arrived[0]
    assert (arrived.whole, arrived.beyond) == (10_000, 0)
    _, *others = put(ledger, 0, 80_000)
    for body in others:
        ledger.take(body)
    assert ledger.lost == 1
    assert sys.getsizeof(arrived.beyond) < 12_000
