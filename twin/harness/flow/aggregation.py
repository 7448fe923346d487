"""Aggregation: four requests for a message, answered by another program, and one message out of the answers.

Replies are not done with until their set is complete and its output is safe, so the broker keeps what an
ended worker had collected; the reports' product kept it in a database.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence

from twin.harness.brokers.interface import Delivery, Message, Queue
from twin.harness.flow.outputs import Output
from twin.harness.flow.units import Outcome, Work

REQUESTS = 4
_SET, _PART, _REPLY_TO = "aggregation-set", "aggregation-part", "aggregation-reply-to"
_OURS = (_SET, _PART, _REPLY_TO)


class FanOut:
    def __init__(self, requests: Queue, replies: Queue) -> None:
        self._requests, self._replies = requests, replies
        self._sets = itertools.count()

    def __call__(self, deliveries: Sequence[Delivery]) -> Outcome:
        return Outcome([request for one in deliveries for request in self._asked(one)], deliveries)

    def _asked(self, delivery: Delivery) -> list[Message]:
        shared = {**delivery.headers, _SET: str(next(self._sets)), _REPLY_TO: self._replies.name}
        return [
            Message(self._requests, delivery.body, headers={**shared, _PART: str(part)})
            for part in range(REQUESTS)
        ]


def responding(persistent: bool) -> Work:
    """The program behind the flow: copies each request to where its reply is waited for."""

    def respond(deliveries: Sequence[Delivery]) -> Outcome:
        replies = [
            Message(Queue(one.headers[_REPLY_TO], persistent), one.body, headers=one.headers)
            for one in deliveries
        ]
        return Outcome(replies, deliveries)

    return respond


class FanIn:
    """A reply answers for its quarter of the message, so a complete set gives the whole."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._open: dict[str, dict[int, bytes]] = {}
        # in the order in which they came, for that is how a broker is told
        self._held: deque[Delivery] = deque()

    def __call__(self, deliveries: Sequence[Delivery]) -> Outcome:
        puts = [message for one in deliveries for message in self._taken(one)]
        finished = []
        while self._held and self._held[0].headers[_SET] not in self._open:
            finished.append(self._held.popleft())
        return Outcome(puts, finished)

    def _taken(self, reply: Delivery) -> list[Message]:
        self._held.append(reply)
        parts = self._open.setdefault(reply.headers[_SET], {})
        part = int(reply.headers[_PART])
        parts[part] = _quarter(part, reply.body)
        if len(parts) < REQUESTS:
            return []
        del self._open[reply.headers[_SET]]
        body = b"".join(parts[at] for at in range(REQUESTS))
        return self._output(body, {name: text for name, text in reply.headers.items() if name not in _OURS})


def _quarter(part: int, body: bytes) -> bytes:
    return body[len(body) * part // REQUESTS : len(body) * (part + 1) // REQUESTS]
