"""Which numbered messages were acknowledged to their senders, and which of them arrived.

A sender puts its numbers in order and one at a time, so a single number tells all that it has acknowledged.
Arrivals may come twice and in any order; they take one number and a bit for each message after the first gap.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

_HEAD = struct.Struct(">IQ")
SMALLEST_BYTES = _HEAD.size
# of lost messages: enough to look for them
_TOLD = 10


@dataclass
class _Arrived:
    """All numbers below `whole`, and those that have a bit in `beyond`, which starts at `whole`."""

    whole: int = 0
    beyond: int = 0

    def take(self, number: int) -> bool:
        """False for one that was there before."""
        if number in self:
            return False
        self.beyond |= 1 << (number - self.whole)
        # the lowest zero: how many in a row are there now
        row = (~self.beyond & (self.beyond + 1)).bit_length() - 1
        self.whole += row
        self.beyond >>= row
        return True

    def __contains__(self, number: int) -> bool:
        return number < self.whole or bool(self.beyond >> (number - self.whole) & 1)

    def missing(self, end: int) -> Iterator[int]:
        """Of the numbers below `end`."""
        return (number for number in range(self.whole, end) if number not in self)

    def count_missing(self, end: int) -> int:
        after = max(end - self.whole, 0)
        return after - (self.beyond & ((1 << after) - 1)).bit_count()


class Ledger:
    def __init__(self, senders: int) -> None:
        self._put = [0] * senders
        self._acknowledged = [0] * senders
        self._arrived = [_Arrived() for _ in range(senders)]
        self.received = 0
        self.duplicated = 0
        # bodies that nobody here has put
        self.foreign = 0

    @property
    def acknowledged(self) -> int:
        return sum(self._acknowledged)

    def next_number(self, sender: int) -> int:
        """The same one again until it is acknowledged."""
        return self._acknowledged[sender]

    def put(self, sender: int, message_bytes: int) -> bytes:
        """The body of the sender's next message."""
        number = self._acknowledged[sender]
        self._put[sender] = number + 1
        return _HEAD.pack(sender, number).ljust(message_bytes, b"x")

    def acknowledge(self, sender: int) -> None:
        self._acknowledged[sender] = self._put[sender]

    def take(self, body: bytes) -> tuple[int, int] | None:
        """Sender and number of a message that arrives for the first time."""
        sender, number = _HEAD.unpack_from(body) if len(body) >= SMALLEST_BYTES else (-1, 0)
        if not 0 <= sender < len(self._put) or number >= self._put[sender]:
            self.foreign += 1
            return None
        if not self._arrived[sender].take(number):
            self.duplicated += 1
            return None
        self.received += 1
        return sender, number

    @property
    def lost(self) -> int:
        """Acknowledged and not here, so far."""
        return sum(arrived.count_missing(end) for arrived, end in self._accounts())

    def some_lost(self) -> list[tuple[int, int]]:
        """Sender and number of the first few."""
        lost = (
            (sender, number)
            for sender, (arrived, end) in enumerate(self._accounts())
            for number in arrived.missing(end)
        )
        return list(islice(lost, _TOLD))

    def _accounts(self) -> Iterator[tuple[_Arrived, int]]:
        return zip(self._arrived, self._acknowledged, strict=True)
