"""The gate in front of page, tracking and serving: who may ask for what, how much, and how often they did.

Where only this machine can ask, no token is needed, but the name that was asked for has to be this machine's
own: a site that makes its name lead here is not let in. Everywhere else each request has a token, of a role
that suffices.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from anyio import to_thread
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from twin.app.serving import measured
from twin.app.serving.limits import Limit, LimitedBody
from twin.app.serving.places import is_loopback
from twin.app.serving.tokens import ROLES, Role, tokens_if_needed
from twin.core.settings import Settings

READER, OPERATOR = ROLES
METRICS = "/metrics"
# what a probe on this machine may ask without a token
_OPEN = ("/health", "/ping")
_LOOKING = ("GET", "HEAD")
# the role that was let in, for what stands behind the gate
ROLE = "twin.role"

log = logging.getLogger("twin.serving")


@dataclass(frozen=True)
class Rules:
    """What one service lets through."""

    service: str
    usually: Limit
    # by the beginning of their paths
    uploads: Mapping[str, Limit] = field(default_factory=dict)
    # whether a reader may send this: a method and a path. Asking is no change, whatever the method is
    for_readers: Callable[[str, str], bool] = lambda method, _: method in _LOOKING
    # nobody may: by the beginning of their paths
    closed: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def limit(self, path: str) -> Limit:
        return next((one for start, one in self.uploads.items() if path.startswith(start)), self.usually)


@dataclass(frozen=True)
class _Refusal:
    status: int
    problem: str
    headers: tuple[tuple[str, str], ...] = ()


_NOT_OURS = _Refusal(400, "this name is not one of this machine's own")
_NOBODY = _Refusal(
    401,
    "a token is needed: `twin token reader` or `twin token operator` prints one",
    (("WWW-Authenticate", 'Basic realm="twin: reader or operator", charset="UTF-8"'),),
)
_CROSS_SITE = _Refusal(403, "another site sent this")
_READER = _Refusal(403, "a reader may look and ask; this needs the operator's token")
_CLOSED = _Refusal(403, "this part is not offered here")


class Gate:
    def __init__(
        self, app: ASGIApp, settings: Settings, rules: Rules, more: Callable[[], bytes] | None = None
    ) -> None:
        """`more` is what `/metrics` tells beside requests and predictions."""
        self.app = app
        self._rules, self._more = rules, more
        self._tokens = tokens_if_needed(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            # nothing of ours speaks that
            await send({"type": "websocket.close", "code": 1008})
            return
        started = time.perf_counter()
        answer = _Answer(send, self._rules.headers)
        try:
            await self._let_in(HTTPConnection(scope), receive, answer)
        finally:
            measured.request_answered(
                self._rules.service, scope["method"], answer.status, time.perf_counter() - started
            )

    async def _let_in(self, asked: HTTPConnection, receive: Receive, answer: _Answer) -> None:
        scope = asked.scope
        role = self._role(asked)
        refusal = self._refusal(asked, role)
        if refusal is not None:
            await answer.refuse(refusal)
        elif scope["path"] == METRICS and scope["method"] in _LOOKING:
            await answer.say(200, await to_thread.run_sync(self._metrics), measured.CONTENT_TYPE)
        else:
            body = LimitedBody(receive, self._rules.limit(scope["path"]))
            answer.body = body
            try:
                await self.app({**scope, ROLE: role}, body, answer.send)
            except Exception:
                # whoever was reading the body could not go on
                if body.broken is None:
                    raise
            await answer.end()

    def _role(self, asked: HTTPConnection) -> Role | None:
        return OPERATOR if self._tokens is None else self._tokens.role_of(asked.headers.get("authorization"))

    def _refusal(self, asked: HTTPConnection, role: Role | None) -> _Refusal | None:
        method, path = asked.scope["method"], asked.scope["path"]
        if self._tokens is None and not is_loopback(_name(asked.headers.get("host"))):
            return _NOT_OURS
        if role is None:
            here = is_loopback(asked.client.host if asked.client else None)
            return None if here and path in _OPEN and method in _LOOKING else _NOBODY
        if method not in _LOOKING and _from_another_site(asked):
            return _CROSS_SITE
        if path.startswith(self._rules.closed):
            return _CLOSED
        if role == READER and not self._rules.for_readers(method, path):
            return _READER
        return None

    def _metrics(self) -> bytes:
        try:
            more = self._more() if self._more is not None else b""
        except Exception:
            # what the services count is told whatever became of the tables
            log.exception("some metrics could not be told")
            more = b""
        return measured.told() + more


class _Answer:
    """What goes back: with the headers of the service, and the gate's own word where a limit was broken and
    the application would say something else, or nothing."""

    def __init__(self, send: Send, headers: Mapping[str, str]) -> None:
        self._send, self._headers = send, headers
        self._started = self._replaced = False
        self.status = 500
        self.body: LimitedBody | None = None

    async def send(self, message: Message) -> None:
        if self._replaced:
            return
        if message["type"] == "http.response.start":
            broken = self.body.broken if self.body else None
            if broken is not None and message["status"] != broken.status_code:
                await self.end()
                return
            self._begin(message)
        await self._send(message)

    async def end(self) -> None:
        broken = self.body.broken if self.body else None
        if broken is not None and not self._started:
            await self.refuse(_Refusal(broken.status_code, f"what was sent {broken.detail}"))
            self._replaced = True

    async def refuse(self, refusal: _Refusal) -> None:
        content = json.dumps({"problem": refusal.problem}).encode()
        await self.say(refusal.status, content, "application/json", refusal.headers)

    async def say(
        self, status: int, content: bytes, content_type: str, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        start: Message = {"type": "http.response.start", "status": status, "headers": []}
        told = [("content-type", content_type), ("content-length", str(len(content))), *headers]
        MutableHeaders(scope=start).update(dict(told))
        self._begin(start)
        await self._send(start)
        await self._send({"type": "http.response.body", "body": content})

    def _begin(self, start: Message) -> None:
        self._started, self.status = True, start["status"]
        MutableHeaders(scope=start).update(self._headers)


def _name(host: str | None) -> str | None:
    """Without its port."""
    try:
        return urlsplit(f"//{host or ''}").hostname
    except ValueError:
        return None


def _place(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _from_another_site(asked: HTTPConnection) -> bool:
    """Browsers tell where a request comes from and let no page forge it; what is no browser tells nothing."""
    site = asked.headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = asked.headers.get("origin")
    return origin is not None and _place(origin) != asked.headers.get("host")
