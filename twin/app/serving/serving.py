"""The champion over HTTP: what `mlflow models serve` answers, by MLflow's own scoring, behind our gate."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from twin.app.serving.champion import MOST_ROWS, Champion
from twin.app.serving.gate import Gate, Rules
from twin.app.serving.limits import Limit
from twin.core.outside import BadInput
from twin.core.outside_parquet import parquet_batches
from twin.core.settings import Settings

if TYPE_CHECKING:
    from twin.app.serving.champion import CountedModel

_INVOCATIONS = "/invocations"
# a model computes: more threads than this take turns instead of getting done
_AT_ONCE = 4
_WAITING = "for a model to serve"

log = logging.getLogger("twin.serving")


def for_readers(method: str, path: str) -> bool:
    return method in ("GET", "HEAD") or (method == "POST" and path == _INVOCATIONS)


RULES = Rules(
    service="serving",
    usually=Limit(bytes=8_000_000, seconds=30),
    for_readers=for_readers,
    headers={"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"},
)


def create_serving(settings: Settings, champion: Champion | None = None) -> Gate:
    champion = champion or Champion(settings)
    turns = CapacityLimiter(_AT_ONCE)

    @asynccontextmanager
    async def started(_: Starlette) -> AsyncIterator[None]:
        threading.Thread(target=champion.follow, name="champion", daemon=True).start()
        yield
        champion.stop()

    async def health(_: Request) -> Response:
        """That the process is well, and what it serves."""
        served = champion.served
        if served is None:
            return JSONResponse({"status": "waiting", "note": _WAITING})
        return JSONResponse({"status": "healthy", "note": f"version {served.version}"})

    async def ping(_: Request) -> Response:
        """That it can answer."""
        return _nothing_yet() if champion.served is None else Response("\n", media_type="application/json")

    async def version(_: Request) -> Response:
        from mlflow.version import VERSION

        return PlainTextResponse(VERSION, media_type="application/json")

    async def invocations(request: Request) -> Response:
        content = await request.body()
        # asked for once the body is there: what came in between is what answers
        served = champion.served
        if served is None:
            return _nothing_yet()
        content_type = request.headers.get("content-type", "")
        return await to_thread.run_sync(_scored, served.model, content, content_type, limiter=turns)

    routes = [
        Route("/health", health),
        Route("/ping", ping),
        Route("/version", version),
        Route(_INVOCATIONS, invocations, methods=["POST"]),
    ]
    app = Starlette(routes=routes, lifespan=started, exception_handlers={HTTPException: _refused})
    return Gate(app, settings, RULES)


async def _refused(_: Request, error: Exception) -> Response:
    told = error if isinstance(error, HTTPException) else HTTPException(500)
    return JSONResponse({"problem": told.detail}, status_code=told.status_code, headers=told.headers)


def _nothing_yet() -> Response:
    problem = "there is no champion yet: `make run` or `twin train` makes one, and it is served at once"
    return JSONResponse({"problem": problem}, status_code=503, headers={"Retry-After": "15"})


def _scored(model: CountedModel, content: bytes, content_type: str) -> Response:
    from mlflow.exceptions import MlflowException
    from mlflow.pyfunc.scoring_server import CONTENT_TYPE_PARQUET, invocations

    # wherever it stands: MLflow takes off more white space than a beginning would allow for
    if CONTENT_TYPE_PARQUET in content_type and (problem := _problem_of_parquet(content)):
        return JSONResponse({"problem": problem}, status_code=400)
    try:
        found = invocations(content, content_type, model, model.input_schema)
    except MlflowException as error:
        # as MLflow tells it, without the lines of code that it went through
        told = {"error_code": error.error_code, "message": error.message}
        return JSONResponse(told, status_code=error.get_http_status_code())
    except Exception:
        log.exception("a request could not be read")
        return JSONResponse({"problem": "this cannot be read as a request"}, status_code=400)
    return Response(found.response, status_code=found.status, media_type=found.mimetype)


def _problem_of_parquet(content: bytes) -> str | None:
    """MLflow reads what it gets, however much that is once unpacked."""
    try:
        for _ in parquet_batches(io.BytesIO(content), MOST_ROWS, MOST_ROWS):
            pass
    except BadInput as error:
        return f"this {error}"
    return None
