"""What is written on an AMQP channel: gathered until the socket has taken what came before.

A call of the system for each message or acknowledgement would cost more than all the rest of it.
"""

from __future__ import annotations

import asyncio

from aiormq.abc import ChannelFrame
from aiormq.channel import Channel
from aiormq.exceptions import ChannelInvalidStateError

# what may wait for the socket before who sends has to wait as well
_BUFFER_BYTES = 65536


class Writer:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        # there while something is under way to the socket
        self._writing: asyncio.Future[None] | None = None

    def write(self, frames: bytes) -> None:
        if self._channel.is_closed:
            raise ChannelInvalidStateError
        self._waiting.append(frames)
        self._waiting_bytes += len(frames)
        if self._writing is None:
            self._writing = self._channel.create_future()
            # the others of this turn of the loop go with it
            self._channel.loop.call_soon(self._write)

    async def has_room(self) -> None:
        while self._waiting_bytes > _BUFFER_BYTES:
            await self._under_way()

    async def is_empty(self) -> None:
        while self._writing is not None:
            await self._under_way()

    async def _under_way(self) -> None:
        if self._channel.is_closed:
            raise ChannelInvalidStateError
        if self._writing is not None and not self._writing.done():
            # who waits may be cancelled, the socket is not
            await asyncio.shield(self._writing)
        else:
            await asyncio.sleep(0)

    def _write(self) -> None:
        channel, written = self._channel, self._writing
        if written is None or written.done():
            return
        frame = ChannelFrame(b"".join(self._waiting), False, written)
        self._waiting, self._waiting_bytes = [], 0
        written.add_done_callback(self._written)
        if channel.write_queue.full():
            # a task of the channel ends with the channel: where the socket is gone nothing makes room
            channel.create_task(channel.write_queue.put(frame))
        else:
            channel.write_queue.put_nowait(frame)

    def _written(self, _: asyncio.Future[None]) -> None:
        self._writing = None
        if self._waiting and not self._channel.is_closed:
            self._writing = self._channel.create_future()
            self._write()
