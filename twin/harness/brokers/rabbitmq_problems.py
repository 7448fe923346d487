"""Whatever RabbitMQ or its library raises, as a problem that can be told."""

from __future__ import annotations

import asyncio
from types import TracebackType

from aiormq.channel import Channel
from aiormq.exceptions import (
    AMQPError,
    ChannelClosed,
    ChannelInvalidStateError,
    ConnectionClosed,
    DeliveryError,
    PublishError,
)

from twin.harness.brokers.interface import BrokerProblem

GONE = "the connection to RabbitMQ is gone"
OVER = "This session is over: open another"
LIBRARY = (AMQPError, ChannelInvalidStateError, OSError, RuntimeError, ValueError, TimeoutError)


class Told:
    """Around every call on a channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, BrokerProblem):
            return
        if self._channel.is_closed:
            # who waits for a channel that closes gets any exception, or is cancelled; who is cancelled by
            # others is to end
            task = asyncio.current_task()
            ended = isinstance(error, asyncio.CancelledError) and not (task and task.cancelling())
            if not ended and not isinstance(error, Exception):
                return
        elif not isinstance(error, LIBRARY):
            return
        raise problem_of(self._channel, error) from error


def problem_of(channel: Channel, error: BaseException | None = None) -> BrokerProblem:
    if isinstance(error, PublishError):
        return BrokerProblem(f"there is no queue {error.args[1]}: declare it first")
    if isinstance(error, DeliveryError):
        return BrokerProblem("RabbitMQ did not take a message")
    if not channel.is_closed:
        return BrokerProblem(f"RabbitMQ: {error or 'no answer in time'}")
    closing = channel.closing
    closed = None if closing.cancelled() else closing.exception()
    if isinstance(closed, ChannelClosed):
        return BrokerProblem(f"RabbitMQ refuses: {said(closed)}. {OVER}")
    return BrokerProblem(f"{GONE}: {said(closed)}" if isinstance(closed, ConnectionClosed) else GONE)


def said(error: AMQPError) -> str:
    """The broker's own words: the last that the library keeps."""
    return str(error.args[-1]) if error.args else "no reason"
