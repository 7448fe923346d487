"""Publishing on an AMQP channel, a unit of work as one write and one future.

The library's own `basic_publish` has two futures, a lock and a random identifier for each message and waits
for its confirmation, so that a unit of work would be many tasks. It still keeps count of what is confirmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pamqp.frame
from aiormq.channel import Channel, Returning
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.common import FieldTable
from pamqp.header import ContentHeader

from twin.harness.brokers.interface import Message, Topic
from twin.harness.brokers.rabbitmq_writing import Writer
from twin.harness.brokers.unit_of_work import UnitOfWork

# of `content` topics: the header that is compared. One that begins with x- would not be.
KEY_HEADER = "twin-key"
# longest that a broker may take to confirm a unit of work
_ANSWERING_S = 60
_LASTING, _PASSING = 2, 1


class Publisher:
    def __init__(self, channel: Channel, writer: Writer) -> None:
        self._channel, self._writer = channel, writer
        self._switching = asyncio.Lock()
        self._methods: dict[tuple[str, str, bool], bytes] = {}
        # the library takes it for a message that came back, and heeds its confirmation no more
        self._unheeded = Returning(loop=channel.loop)

    async def put(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        channel = self._channel
        if not channel.publisher_confirms:
            await self._switch_confirmations_on()
        first = channel.delivery_tag + 1
        tags = range(first, first + len(messages))
        frames = [
            self._frames(message, str(tag)) for tag, message in zip(tags, messages, strict=True)
        ]  # fmt: skip
        self._writer.write(b"".join(frames))
        unit: Any = UnitOfWork(len(messages), channel.create_future())
        for tag in tags:
            channel.confirmations[tag] = unit
            # the library looks a returned message up by its identifier
            channel.message_id_delivery_tag[str(tag)] = tag
        channel.delivery_tag = tags[-1]
        try:
            async with asyncio.timeout(_ANSWERING_S):
                await unit.finished
        finally:
            for tag in tags:
                channel.message_id_delivery_tag.pop(str(tag), None)

    async def send(self, message: Message) -> None:
        await self._writer.has_room()
        if self._switching.locked():
            async with self._switching:
                pass
        self._writer.write(self._frames(message))
        if self._channel.publisher_confirms:
            self._channel.delivery_tag += 1
            self._channel.confirmations[self._channel.delivery_tag] = self._unheeded

    async def _switch_confirmations_on(self) -> None:
        """Only for who puts: who sends and never puts should not pay. The broker counts what follows."""
        async with self._switching:
            if not self._channel.publisher_confirms:
                await self._writer.is_empty()
                await self._channel.confirm_delivery()
                self._channel.publisher_confirms = True

    def _frames(self, message: Message, identifier: str | None = None) -> bytes:
        channel, to, body = self._channel, message.to, message.body
        headers: FieldTable = dict(message.headers)
        if isinstance(to, Topic):
            route = (to.name, message.key, False)
            if to.routing == "content":
                headers[KEY_HEADER] = message.key
        else:
            # of what is confirmed, a message that no queue takes comes back
            route = ("", to.name, identifier is not None)
        method = self._methods.get(route)
        if method is None:
            exchange, routing_key, mandatory = route
            publish = Basic.Publish(exchange=exchange, routing_key=routing_key, mandatory=mandatory)
            method = self._methods[route] = pamqp.frame.marshal(publish, channel.number)
        properties = Basic.Properties(
            delivery_mode=_LASTING if to.persistent else _PASSING,
            message_id=identifier if route[2] else None,
            headers=headers or None,
        )
        header = ContentHeader(body_size=len(body), properties=properties)
        most = channel.max_content_size
        parts = (ContentBody(body[at : at + most]) for at in range(0, len(body), most))
        return b"".join(
            [
                method,
                pamqp.frame.marshal(header, channel.number),
                *(pamqp.frame.marshal(part, channel.number) for part in parts),
            ]
        )
