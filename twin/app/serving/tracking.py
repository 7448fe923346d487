"""MLflow's own server (runs, registry, files, its page) behind our gate."""

from __future__ import annotations

import os
import re
import uuid
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from twin.app.serving.gate import READER, ROLE, Gate, Rules
from twin.app.serving.limits import Limit
from twin.core.outside import BadInput, json_of
from twin.core.settings import Settings

if TYPE_CHECKING:
    from graphql import DocumentNode

_GRAPHQL = "/graphql"
_API = r"/(?:ajax-)?api/[23]\.0/mlflow/"
# questions that MLflow's clients and page send with a body
_QUESTIONS = re.compile(
    _API
    + r"(?:experiments/search|experiments/search-datasets|runs/search|logged-models/search|datasets/search"
    r"|registered-models/get-latest-versions|issues/search"
    r"|traces/(?:search|batchGetInfos|metrics|calculate-filter-correlation))"
)
# what is sent to other machines
_WEBHOOKS = re.compile(_API + r"webhooks(?:/.*)?")
_LOOKING = ("GET", "HEAD")


def create_tracking(settings: Settings) -> Gate:
    _prepare(settings)
    from mlflow.server.fastapi_app import app
    from mlflow.server.handlers import initialize_backend_stores

    # a database is made or brought up to date before anybody asks
    initialize_backend_stores(
        settings.tracking_uri, settings.tracking_uri, os.environ["_MLFLOW_SERVER_ARTIFACT_ROOT"]
    )
    return Gate(_OnlyQueries(app), settings, RULES)


def for_readers(method: str, path: str) -> bool:
    """A reader looks: no run, no file, no tag, no alias changes. What is not known to be a question is not
    one, so that what MLflow adds one day is the operator's."""
    if path == _GRAPHQL:
        return True  # a query; `_OnlyQueries` looks into it
    if method in _LOOKING:
        return _WEBHOOKS.fullmatch(path) is None
    return method == "POST" and _QUESTIONS.fullmatch(path) is not None


def _beneath(*names: str) -> tuple[str, ...]:
    apis = ("/api/2.0", "/api/3.0", "/ajax-api/2.0", "/ajax-api/3.0")
    return tuple(f"{api}/{name}" for api in apis for name in names)


_FILE = Limit(bytes=2_000_000_000, seconds=900)
RULES = Rules(
    service="tracking",
    usually=Limit(bytes=20_000_000, seconds=60),
    uploads=dict.fromkeys(_beneath("mlflow-artifacts/", "mlflow/upload-artifact"), _FILE)
    | {_GRAPHQL: Limit(bytes=100_000, seconds=30)},
    for_readers=for_readers,
    # run programs on this machine or call other ones with keys that are kept here: nothing of ours needs them
    closed=(
        "/gateway/",
        *_beneath("mlflow/gateway", "mlflow/assistant", "mlflow/genai", "mlflow/scorer/", "jobs"),
    ),
    headers={
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "SAMEORIGIN",
        "Referrer-Policy": "no-referrer",
    },
)


def _prepare(settings: Settings) -> None:
    """What `mlflow server` hands to its application. MLflow's own checks of hosts and origins know nothing of
    names other than private addresses, and let any page of this machine write: the gate checks both."""
    settings.folder("mlflow")
    os.environ |= {
        "_MLFLOW_SERVER_FILE_STORE": settings.tracking_uri,
        "_MLFLOW_SERVER_REGISTRY_STORE": settings.tracking_uri,
        "_MLFLOW_SERVER_ARTIFACT_ROOT": "mlflow-artifacts:/",
        "_MLFLOW_SERVER_ARTIFACT_DESTINATION": settings.artifacts_uri,
        "_MLFLOW_SERVER_SERVE_ARTIFACTS": "true",
        "_MLFLOW_SERVER_BOOT_ID": uuid.uuid4().hex,
        "_MLFLOW_IN_JOB_EXECUTOR": "false",
        "_MLFLOW_SGI_NAME": "uvicorn",
        "MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE": "true",
        # runners of jobs that nobody here submits
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }


class _OnlyQueries:
    """MLflow's page asks by GraphQL, where a question and a change have the same address: a reader's document
    has nothing but questions."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != _GRAPHQL or scope.get(ROLE) != READER:
            await self._app(scope, receive, send)
            return
        body = await _whole(receive)
        if not _only_asks(body):
            problem = "a reader's GraphQL is a query; this needs the operator's token"
            await JSONResponse({"problem": problem}, status_code=403)(scope, receive, send)
            return

        async def again() -> Message:
            nonlocal body
            message: Message = {"type": "http.request", "body": body, "more_body": False}
            body = b""
            return message

        await self._app(scope, again, send)


async def _whole(receive: Receive) -> bytes:
    parts, more = [], True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


def _only_asks(body: bytes) -> bool:
    from graphql import GraphQLError, OperationDefinitionNode, OperationType, parse

    try:
        document: DocumentNode = parse(json_of(body)["query"])
    except (BadInput, KeyError, TypeError, GraphQLError, RecursionError):
        return False
    operations = [one for one in document.definitions if isinstance(one, OperationDefinitionNode)]
    return all(one.operation == OperationType.QUERY for one in operations)
