"""How much a request may send, and in what time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

# how many times what it may send
_PATIENCE = 20


@dataclass(frozen=True)
class Limit:
    bytes: int
    seconds: float


class TooLarge(HTTPException):
    """More than a request may send."""

    def __init__(self, most: int) -> None:
        super().__init__(413, f"is larger than {most:,} bytes")


class TooSlow(HTTPException):
    """Somebody holds a connection and sends next to nothing."""

    def __init__(self, seconds: float) -> None:
        super().__init__(408, f"took longer than {seconds:g} s to arrive")


class LimitedBody:
    """Counts what comes, whatever its header says, and keeps no more than it may. The rest of what a browser
    sends is taken and dropped, within reason: one that is cut off does not read why."""

    def __init__(self, receive: Receive, limit: Limit) -> None:
        self._receive, self._limit = receive, limit
        self._taken, self._whole = 0, False
        self._deadline = asyncio.get_running_loop().time() + limit.seconds
        self.broken: TooLarge | TooSlow | None = None

    async def __call__(self) -> Message:
        message = await self._next()
        if self._taken <= self._limit.bytes:
            return message
        while not self._whole and self._taken <= _PATIENCE * self._limit.bytes:
            await self._next()
        self.broken = TooLarge(self._limit.bytes)
        raise self.broken

    async def _next(self) -> Message:
        try:
            # a whole body may be followed by nothing for as long as its answer takes
            async with asyncio.timeout_at(None if self._whole else self._deadline):
                message = await self._receive()
        except TimeoutError:
            self.broken = TooSlow(self._limit.seconds)
            raise self.broken from None
        self._taken += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        return message
