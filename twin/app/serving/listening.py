"""A service that listens, as its command starts it."""

from __future__ import annotations

import asyncio

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from twin.app.serving.gate import Gate
from twin.core.settings import Settings

# connections and requests at a time; the next ones are told to come back
_MOST_AT_ONCE = 300
_SECONDS_FOR_A_HEAD = 10.0
_LARGEST_HEAD_BYTES = 64_000
# less than the patience of who ends it
_SECONDS_TO_END = 3


class PatientProtocol(H11Protocol):
    """Hangs up on who connects and does not get to the end of a request's head: such connections cost nothing
    to hold and would fill all places."""

    seconds_for_a_head = _SECONDS_FOR_A_HEAD
    _giving_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_a_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._giving_up is None:
            self._wait_for_a_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_a_head(self) -> None:
        self._giving_up = self.loop.call_later(self.seconds_for_a_head, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None


def server(app: Gate, host: str, port: int) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            # unlike the quicker one it has a limit for heads
            http=PatientProtocol,
            h11_max_incomplete_event_size=_LARGEST_HEAD_BYTES,
            ws="none",
            log_level="warning",
            access_log=False,
            limit_concurrency=_MOST_AT_ONCE,
            timeout_graceful_shutdown=_SECONDS_TO_END,
            # the peer is who is connected, whatever a header says
            proxy_headers=False,
            server_header=False,
        )
    )


def listen(app: Gate, settings: Settings, port: int) -> None:
    """Until Ctrl-C or SIGTERM."""
    server(app, settings.host, port).run()
