"""One future for many messages: it is done when the broker has confirmed them all, or refused one."""

from __future__ import annotations

import asyncio
from typing import Any


class UnitOfWork:
    """Stands wherever a library keeps a future for a message of its own."""

    def __init__(self, messages: int, finished: asyncio.Future[None]) -> None:
        self._unconfirmed, self.finished = messages, finished

    def done(self) -> bool:
        return self.finished.done()

    def cancelled(self) -> bool:
        return self.finished.cancelled()

    def set_result(self, _: Any) -> None:
        self._unconfirmed -= 1
        if not self._unconfirmed and not self.finished.done():
            self.finished.set_result(None)

    def set_exception(self, error: BaseException) -> None:
        if not self.finished.done():
            self.finished.set_exception(error)
            # whoever waited may have ended for a reason of its own
            self.finished.exception()
