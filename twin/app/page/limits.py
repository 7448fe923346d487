"""What holds for every request: how much it may send, and what a browser may do with the answer."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# how many times what it may send
_PATIENCE = 20


class TooLarge(HTTPException):
    """More than a request may send."""

    def __init__(self, most: int) -> None:
        super().__init__(413, f"is larger than {most:,} bytes")


class LimitedBody:
    """Counts what comes, whatever its header says, and keeps no more than it may. The rest of what a browser
    sends is taken and dropped, within reason: one that is cut off does not read why."""

    def __init__(self, app: ASGIApp, usually: int, uploads: dict[str, int]) -> None:
        self._app, self._usually, self._uploads = app, usually, uploads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        most = self._uploads.get(scope.get("path", ""), self._usually)
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken <= most:
                return message
            while message.get("more_body") and taken <= _PATIENCE * most:
                message = await receive()
                taken += len(message.get("body", b""))
            raise TooLarge(most)

        await self._app(scope, counted, send)


class WithHeaders:
    def __init__(self, app: ASGIApp, headers: Mapping[str, str]) -> None:
        self._app, self._headers = app, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        await self._app(scope, receive, told)
