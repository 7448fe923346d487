"""The what-if page's server: JSON for the front end in `static`, behind our gate."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from anyio import to_thread
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from features.damage import Unreadable
from twin.app.advising import advise
from twin.app.asking import BadQuestion, checked
from twin.app.costs import BadCosts, Boxes, Prices, checked_costs
from twin.app.examining import Wanted
from twin.app.metrics import home_metrics
from twin.app.page import home
from twin.app.page.curves import curve
from twin.app.page.present import NotReady, Present
from twin.app.page.uploads import MOST_BYTES, MOST_ROWS, answer_upload
from twin.app.plotly_script import NAME as PLOTLY
from twin.app.plotly_script import plotly_script
from twin.app.serving.gate import Gate, Rules
from twin.app.serving.limits import Limit, TooLarge
from twin.app.sizing import size
from twin.app.telling import told_advice, told_sizing
from twin.core.checking import Problem
from twin.core.configuration import Configuration
from twin.core.prediction import THROUGHPUT
from twin.core.settings import Settings
from twin.core.tables import TARGETS

log = logging.getLogger("twin.page")
_STATIC = Path(__file__).parent / "static"
_MOST_JSON_BYTES = 200_000
_MOST_REJECTED = 200
_QUESTIONS = ("/api/curve", "/api/advice", "/api/size", "/api/batch")
_HEADERS = {
    # nothing from elsewhere, and nobody frames it
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class _Question(BaseModel):
    model_config = ConfigDict(extra="forbid")

    # a form sends what it has: empty fields are fields that are not told
    configuration: dict[str, str | int | float | bool | None]

    def checked(self) -> Configuration:
        return checked({name: one for name, one in self.configuration.items() if one not in (None, "")})


class _Curve(_Question):
    along: str | None = None
    metric: str = THROUGHPUT
    # all that tell the metric where none is named
    predictors: list[str] = Field(default_factory=list, max_length=10)


class _Size(_Question, Wanted):
    boxes: Boxes
    options: Annotated[dict[str, list[str | int | float | bool]], Field(max_length=20)]
    costs: dict[str, Any]


def _for_readers(method: str, path: str) -> bool:
    """All of the page: it asks, and changes nothing."""
    return method in ("GET", "HEAD") or (method == "POST" and path in _QUESTIONS)


_RULES = Rules(
    service="page",
    usually=Limit(bytes=_MOST_JSON_BYTES, seconds=30),
    uploads={"/api/batch": Limit(bytes=MOST_BYTES, seconds=120)},
    for_readers=_for_readers,
    headers=_HEADERS,
)


def create_app(settings: Settings) -> Gate:
    present = Present(settings)

    @asynccontextmanager
    async def started(_: FastAPI) -> AsyncIterator[None]:
        await to_thread.run_sync(present.look)
        yield

    app = FastAPI(title="brokertwin", lifespan=started, docs_url=None, redoc_url=None, openapi_url=None)
    _tell_problems(app)
    _ask(app, settings, present)

    @app.get(f"/static/{PLOTLY}")
    def plotly() -> FileResponse:
        return FileResponse(plotly_script(), headers={"Cache-Control": "max-age=86400"})

    for path, folder in {
        "/static": _STATIC,
        "/quality": settings.home / "quality",
        "/book": settings.home / "book",
    }.items():
        app.mount(path, StaticFiles(directory=folder, check_dir=False, html=True))
    return Gate(app, settings, _RULES, more=lambda: home_metrics(settings))


def _ask(app: FastAPI, settings: Settings, present: Present) -> None:
    @app.get("/")
    def index() -> FileResponse:
        return FileResponse(_STATIC / "index.html")

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "healthy"}

    @app.get("/api/home")
    def start(request: Request) -> dict[str, Any]:
        told: dict[str, Any] = {
            "model": None,
            "problem": None,
            "families": [],
            "measured": [],
            "links": home.links(settings, request.url.hostname),
            "limits": {"upload_bytes": MOST_BYTES, "upload_rows": MOST_ROWS},
            "sizing": home.sizing(),
        }
        try:
            known = present.known
        except NotReady as error:
            return told | {"problem": str(error)}
        twin = known.twin
        model = {
            "version": twin.model.version if twin.model else "physics alone",
            "table_version": twin.physics.table_version,
            "predictors": twin.predictors(THROUGHPUT),
            "targets": TARGETS,
        }
        return told | {"model": model, "families": known.families, "measured": known.starts}

    @app.get("/api/configurations/{configuration_id}")
    def configuration(configuration_id: str) -> dict[str, Any]:
        found = present.known.figures.configuration(configuration_id)
        if found is None:
            raise HTTPException(404, "no measurement has this configuration")
        return {"configuration": found}

    @app.post("/api/curve")
    def draw(asked: _Curve) -> dict[str, Any]:
        base, known = asked.checked(), present.known
        return curve(known.twin, known.figures, base, asked.along, asked.metric, asked.predictors)

    @app.post("/api/advice")
    def remedies(asked: _Question) -> dict[str, Any]:
        return told_advice(advise(present.known.twin, asked.checked()))

    @app.post("/api/size")
    def sizing(asked: _Size) -> dict[str, Any]:
        wanted = Wanted(**asked.model_dump(include=set(Wanted.model_fields)))
        prices = checked_costs(Prices, asked.costs)
        told = told_sizing(
            size(present.known.twin, asked.checked(), wanted, asked.options, asked.boxes, prices)
        )
        return told | {"rejected": told["rejected"][:_MOST_REJECTED]}

    @app.post("/api/batch")
    async def batch(
        request: Request,
        name: Annotated[str, Query(max_length=255)],
        predictor: str = "hybrid",
        target: str = THROUGHPUT,
    ) -> dict[str, Any]:
        content = await request.body()
        return await to_thread.run_sync(answer_upload, present.known.twin, name, content, predictor, target)

    @app.get("/api/findings")
    def findings() -> dict[str, Any]:
        return {"findings": _findings(settings)}


def _findings(settings: Settings) -> list[dict[str, Any]]:
    from features.lake import Lake, NoSuchTable
    from twin.core.tables import FINDINGS

    try:
        rows = Lake(settings).arrow(FINDINGS).to_pylist()
    except NoSuchTable as error:
        raise NotReady("nothing has been validated yet: run `make run` or `twin ingest`") from error
    return sorted(rows, key=lambda one: (one["source_id"], one["line"], one["rule"]))


def _tell_problems(app: FastAPI) -> None:
    """Everything that goes wrong is told beside its field or in a sentence; the log has the rest."""

    def problems(found: Sequence[Problem]) -> JSONResponse:
        told = [{"field": field, "reason": reason} for field, reason in found]
        return JSONResponse({"problems": told}, status_code=422)

    @app.exception_handler(BadQuestion)
    def bad_question(_: Request, error: BadQuestion) -> JSONResponse:
        return problems(error.problems)

    @app.exception_handler(BadCosts)
    def bad_costs(_: Request, error: BadCosts) -> JSONResponse:
        return problems([(f"costs.{field}", reason) for field, reason in error.problems])

    @app.exception_handler(RequestValidationError)
    def bad_body(_: Request, error: RequestValidationError) -> JSONResponse:
        # a value that may be of several types is wrong in as many ways: the first will do
        found = {_place(one["loc"]): one["msg"] for one in reversed(error.errors())}
        return problems(list(found.items()))

    @app.exception_handler(TooLarge)
    def too_large(_: Request, error: TooLarge) -> JSONResponse:
        told = {"field": "file", "reason": error.detail}
        return JSONResponse({"problems": [told]}, status_code=error.status_code)

    @app.exception_handler(NotReady)
    @app.exception_handler(Unreadable)
    def not_ready(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"problem": str(error)}, status_code=503)

    @app.exception_handler(HTTPException)
    def refused(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"problem": error.detail}, status_code=error.status_code)

    @app.exception_handler(Exception)
    def failed(request: Request, error: Exception) -> JSONResponse:
        log.error("%s failed", request.url.path, exc_info=error)
        return JSONResponse({"problem": "that did not work; the page's log says why"}, status_code=500)


def _place(location: Sequence[Any]) -> str:
    """`options.cpus` of `body, options, cpus, 0, int`."""
    names = [str(one) for one in location[1:] if isinstance(one, str)]
    return ".".join(names[:2]) if names and names[0] in ("options", "configuration") else (names or [""])[0]
