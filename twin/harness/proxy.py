"""A network that can fail: a TCP proxy on loopback in front of a broker, which is cut, restored and slowed.

The end of one side of a connection ends both, after what was under way has arrived.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_HOST = "127.0.0.1"
# all clients come back at the same moment; the system takes less where it allows less
_BACKLOG = 4096
# of one direction of a connection: what a delay holds back before its sender has to wait
_MOST_LATE_BYTES = 16 * 2**20


class Proxy:
    """`delay` are seconds for everything in each direction, and may be changed at any time."""

    def __init__(self, host: str, port: int) -> None:
        self.delay = 0.0
        self._target = host, port
        self._held = held_port()
        self._listening: asyncio.Server | None = None
        self._near: set[_Near] = set()

    @property
    def port(self) -> int:
        return int(self._held.getsockname()[1])

    @property
    def connections(self) -> int:
        """Open ones, those included that are still being made to the target."""
        return len(self._near)

    def cut(self) -> None:
        """Ends all connections at once and refuses new ones."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        for end in tuple(self._near):
            end.abort()

    async def restore(self) -> None:
        if self._listening is None:
            self._listening = await asyncio.get_running_loop().create_server(
                lambda: _Near(self), _HOST, self.port, backlog=_BACKLOG
            )

    def let_in(self, end: _Near) -> bool:
        # one that was accepted just before a cut gets here after it
        if self._listening is None:
            return False
        self._near.add(end)
        return True

    def leave(self, end: _Near) -> None:
        self._near.discard(end)

    async def reach_target(self, end: _Near) -> None:
        await asyncio.get_running_loop().create_connection(lambda: _End(self, end), *self._target)

    def close(self) -> None:
        self.cut()
        self._held.close()


@asynccontextmanager
async def proxied(host: str, port: int) -> AsyncIterator[Proxy]:
    proxy = Proxy(host, port)
    try:
        await proxy.restore()
        yield proxy
    finally:
        proxy.close()
        # sockets are closed in the next turn of the loop
        await asyncio.sleep(0)


def held_port(port: int = 0) -> socket.socket:
    """A port on which nobody listens and which nobody else is given. Whoever listens there with
    `SO_REUSEADDR`, as servers do, may still do so."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind((_HOST, port))
    except OSError:
        held.close()
        raise
    return held


class _End(asyncio.Protocol):
    """One end of a carried connection: what it receives is written to the other."""

    _transport: asyncio.Transport

    def __init__(self, proxy: Proxy, other: _End | None = None) -> None:
        self._proxy, self._other = proxy, other
        # what is to be written here, and when
        self._late: deque[tuple[float, bytes]] = deque()
        self._late_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._full = self._ending = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        assert self._other is not None
        if self._other._transport.is_closing():
            transport.abort()
        else:
            self._other._other = self
            self._other._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        assert self._other is not None
        self._other._write(data)

    def pause_writing(self) -> None:
        self._full = True
        self._regulate()

    def resume_writing(self) -> None:
        self._full = False
        self._regulate()

    def connection_lost(self, _: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._other is not None:
            self._other._end()

    def _write(self, data: bytes) -> None:
        if not self._late and self._proxy.delay <= 0:
            self._transport.write(data)
            return
        due = asyncio.get_running_loop().time() + max(self._proxy.delay, 0.0)
        self._late.append((due, data))
        self._late_bytes += len(data)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(due, self._write_late)
        self._regulate()

    def _write_late(self) -> None:
        loop = asyncio.get_running_loop()
        while self._late and self._late[0][0] <= loop.time():
            _, data = self._late.popleft()
            self._late_bytes -= len(data)
            self._transport.write(data)
        self._timer = loop.call_at(self._late[0][0], self._write_late) if self._late else None
        if self._ending and not self._late:
            self._transport.close()
        else:
            self._regulate()

    def _end(self) -> None:
        self._ending = True
        if not self._late:
            self._transport.close()

    def _regulate(self) -> None:
        """The other end reads no faster than this one writes."""
        if self._other is None:
            return
        if self._full or self._late_bytes > _MOST_LATE_BYTES:
            self._other._transport.pause_reading()
        else:
            self._other._transport.resume_reading()


class _Near(_End):
    """The client's end. It is read as soon as the target is reached."""

    def __init__(self, proxy: Proxy) -> None:
        super().__init__(proxy)
        self._reaching: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._proxy.let_in(self):
            transport.pause_reading()
            self._reaching = asyncio.get_running_loop().create_task(self._reach_target())
        else:
            transport.abort()

    def connection_lost(self, _: Exception | None) -> None:
        self._proxy.leave(self)
        super().connection_lost(_)

    def abort(self) -> None:
        self._proxy.leave(self)
        if self._reaching is not None:
            self._reaching.cancel()
        self._transport.abort()
        if self._other is not None:
            self._other._transport.abort()

    async def _reach_target(self) -> None:
        try:
            await self._proxy.reach_target(self)
        except OSError:
            self._transport.abort()
