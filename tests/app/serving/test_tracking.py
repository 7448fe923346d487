"""MLflow behind the gate: a reader looks, and changes nothing whichever way it is tried."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from training.registry import CHAMPION, EXPERIMENT, MODEL
from twin.app.serving.tracking import create_tracking, for_readers

# what a reader may send with a body, all of it questions
QUESTIONS = {
    "experiments/search",
    "experiments/search-datasets",
    "runs/search",
    "logged-models/search",
    "datasets/search",
    "registered-models/get-latest-versions",
    "issues/search",
    "traces/search",
    "traces/batchGetInfos",
    "traces/metrics",
    "traces/calculate-filter-correlation",
}
CHANGES = [
    ("POST", "/api/2.0/mlflow/registered-models/alias"),
    ("DELETE", "/api/2.0/mlflow/registered-models/alias"),
    ("POST", "/ajax-api/2.0/mlflow/registered-models/alias"),
    ("POST", "/api/2.0/mlflow/registered-models/create"),
    ("DELETE", "/api/2.0/mlflow/registered-models/delete"),
    ("POST", "/api/2.0/mlflow/model-versions/create"),
    ("POST", "/api/2.0/mlflow/model-versions/transition-stage"),
    ("POST", "/api/2.0/mlflow/model-versions/set-tag"),
    ("DELETE", "/ajax-api/2.0/mlflow/model-versions/delete"),
    ("POST", "/api/2.0/mlflow/runs/create"),
    ("POST", "/api/2.0/mlflow/runs/log-batch"),
    ("PUT", "/api/2.0/mlflow-artifacts/artifacts/1/x/artifacts/model.py"),
    ("DELETE", "/api/2.0/mlflow-artifacts/artifacts/1/x"),
    ("POST", "/ajax-api/2.0/mlflow/upload-artifact"),
    ("POST", "/api/2.0/mlflow/webhooks"),
    ("GET", "/api/2.0/mlflow/webhooks"),
    ("POST", "/v1/traces"),
    ("POST", "/api/2.0/mlflow/runs/search/"),
    ("POST", "//api/2.0/mlflow/runs/search"),
    ("POST", "/api/2.0/mlflow/runs/search/../create"),
    ("PUT", "/api/2.0/mlflow/runs/search"),
    ("OPTIONS", "/api/2.0/mlflow/runs/search"),
]
CLOSED = [
    ("GET", "/ajax-api/2.0/mlflow/gateway-proxy"),
    ("POST", "/ajax-api/2.0/mlflow/gateway-proxy"),
    ("GET", "/api/3.0/mlflow/gateway/secrets/list"),
    ("POST", "/api/3.0/mlflow/gateway/secrets/create"),
    ("POST", "/gateway/mlflow/v1/chat/completions"),
    ("POST", "/ajax-api/3.0/mlflow/assistant/message"),
    ("GET", "/ajax-api/3.0/mlflow/assistant/sessions/x/stream"),
    ("POST", "/ajax-api/3.0/mlflow/scorer/invoke"),
    ("POST", "/ajax-api/3.0/mlflow/genai/evaluate/invoke"),
    ("POST", "/ajax-api/3.0/jobs/"),
]


@pytest.fixture(scope="module")
def tracking(outside):
    return create_tracking(outside)


@pytest.fixture(scope="module")
def routes(tracking):
    """Every address that MLflow knows, with its methods."""
    from mlflow.server import app as flask

    found = {(rule.rule, method) for rule in flask.url_map.iter_rules() for method in rule.methods}
    from mlflow.server.fastapi_app import app

    found |= {(one.path, method) for one in app.routes for method in getattr(one, "methods", None) or ()}
    assert len(found) > 400
    return {(re.sub(r"<[^>]*>|\{[^}]*\}", "x", path), method) for path, method in found}


def test_no_address_of_mlflow_is_open_without_a_token(tracking, routes, ask):
    client = ask(tracking)
    more = {("/metrics", "GET"), ("/static-files/x.js", "GET"), ("/nothing", "GET"), ("/health", "GET")}
    assert {client.request(method, path).status_code for path, method in routes | more} == {401}


def test_a_reader_sends_nothing_but_questions(routes):
    sent = {path for path, method in routes if method not in ("GET", "HEAD") and for_readers(method, path)}
    assert {re.sub(r"^/(ajax-)?api/[23]\.0/mlflow/", "", path) for path in sent} == {*QUESTIONS, "/graphql"}


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_a_reader_changes_nothing(tracking, ask, bearer, method, path):
    answer = ask(tracking).request(method, path, headers=bearer("reader"), json={})
    assert answer.status_code == 403
    assert "operator" in answer.json()["problem"]


@pytest.mark.parametrize(("method", "path"), CLOSED)
def test_what_calls_out_or_runs_programs_is_closed(tracking, ask, bearer, settings, method, path):
    for role in ("reader", "operator"):
        assert ask(tracking).request(method, path, headers=bearer(role), json={}).status_code == 403


def test_a_reader_s_graphql_asks(tracking, ask, bearer):
    asking = 'query {test(inputString: "x") {output}}'
    change = 'mutation {testMutation(inputString: "x") {output}}'

    def status(role, **sent):
        return ask(tracking).post("/graphql", headers=bearer(role), **sent).status_code

    assert status("reader", json={"query": asking}) == 200
    for query in (change, f"{asking} {change}", "subscription {x}", "{", None, 3):
        assert status("reader", json={"query": query}) == 403, query
    assert status("reader", json={"query": asking, "operationName": "x"}) == 200
    assert status("reader", json=[{"query": change}]) == 403
    assert status("reader", content=f'{{"query": "{{x}}", "query": "{change}"}}') == 403
    assert status("reader", json={"query": "{x}" + " " * 100_000}) == 413
    assert status("operator", json={"query": change}) == 200


def test_files_may_be_large_and_questions_may_not(tracking, ask, bearer):
    client, large = ask(tracking), b"x" * 21_000_000
    path = "/api/2.0/mlflow-artifacts/artifacts/large/file.bin"
    assert client.put(path, content=large, headers=bearer("operator")).status_code == 200
    assert client.get(path, headers=bearer("reader")).content == large
    refused = client.post("/api/2.0/mlflow/runs/search", content=large, headers=bearer("reader"))
    assert refused.status_code == 413
    refused = client.post("/api/2.0/mlflow/runs/create", content=large, headers=bearer("operator"))
    assert refused.status_code == 413


def test_a_page_of_this_machine_s_other_ports_changes_nothing(settings, ask):
    """MLflow's own checks would let it."""
    client = ask(create_tracking(settings), "127.0.0.1")
    path, sent = "/api/2.0/mlflow/experiments/create", {"name": "planted"}
    for origin in ("http://127.0.0.1:9999", "http://localhost:3000", "http://planner.example"):
        assert client.post(path, json=sent, headers={"origin": origin}).status_code == 403
    assert client.get("/", headers={"host": "planner.example"}).status_code == 400
    assert client.get("/").headers["x-frame-options"] == "SAMEORIGIN"


@pytest.fixture
def client_of(tracking, listening, outer_address, tokens, monkeypatch, tmp_path):
    """MLflow's own client at another address than loopback, with the token of a role."""
    import mlflow

    with listening(tracking, outer_address) as url:
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        monkeypatch.setenv("NO_PROXY", outer_address)

        def client(role):
            if role is None:
                monkeypatch.delenv("MLFLOW_TRACKING_TOKEN", raising=False)
            else:
                monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", tokens[role])
            return mlflow.MlflowClient(tracking_uri=url, registry_uri=url)

        yield client


def test_a_reader_s_token_cannot_promote_a_model(client_of, tmp_path):
    from mlflow.exceptions import MlflowException

    operator = client_of("operator")
    experiment = operator.create_experiment("promotion")
    run = operator.create_run(experiment).info.run_id
    file = tmp_path / "model.txt"
    file.write_text("a model")
    operator.log_artifact(run, str(file))
    operator.create_registered_model(MODEL)
    for _ in range(2):
        operator.create_model_version(MODEL, operator.get_run(run).info.artifact_uri, run)
    operator.set_registered_model_alias(MODEL, CHAMPION, "1")

    attempts = {
        "promote": lambda one: one.set_registered_model_alias(MODEL, CHAMPION, "2"),
        "unseat": lambda one: one.delete_registered_model_alias(MODEL, CHAMPION),
        "delete a version": lambda one: one.delete_model_version(MODEL, "1"),
        "delete the model": lambda one: one.delete_registered_model(MODEL),
        "change the stage": lambda one: one.transition_model_version_stage(MODEL, "2", "Production"),
        "tag": lambda one: one.set_model_version_tag(MODEL, "2", "reason", "because"),
        "describe": lambda one: one.update_model_version(MODEL, "2", "better"),
        "register": lambda one: one.create_model_version(MODEL, "s3://elsewhere", run),
        "rename": lambda one: one.rename_registered_model(MODEL, "other"),
        "run": lambda one: one.create_run(experiment),
        "log a metric": lambda one: one.log_metric(run, "error", 0.0),
        "log a file": lambda one: one.log_artifact(run, str(file)),
        "delete the run": lambda one: one.delete_run(run),
    }
    for role, refused in (("reader", r"operator's token|403"), (None, r"a token is needed|401")):
        client = client_of(role)
        for what, attempt in attempts.items():
            with pytest.raises((MlflowException, OSError)) as problem:
                attempt(client)
            assert re.search(refused, str(problem.value)), (role, what)

    reader = client_of("reader")
    assert reader.get_model_version_by_alias(MODEL, CHAMPION).version == "1"
    assert len(reader.search_model_versions(f"name = '{MODEL}'")) == 2
    assert len(reader.search_runs([experiment])) == 1
    assert reader.get_run(run).data.metrics == {}
    assert [one.path for one in reader.list_artifacts(run)] == ["model.txt"]
    fetched = reader.download_artifacts(run, "model.txt", str(tmp_path))
    assert Path(fetched).read_text() == "a model"

    client_of("operator").set_registered_model_alias(MODEL, CHAMPION, "2")
    assert client_of("reader").get_model_version_by_alias(MODEL, CHAMPION).version == "2"


def test_our_own_processes_have_their_deployment_s_token(client_of, settings, tmp_path, monkeypatch):
    """Where tokens lie outside the home they are shared; those of a home go to no other server."""
    import mlflow

    from training.registry import Registry

    url = client_of(None)._registry_uri
    monkeypatch.setenv("MLFLOW_TRACKING_URI", url)
    before = mlflow.get_tracking_uri()
    shared = tmp_path / "shared.json"
    shared.write_text(settings.tokens_file.read_text())
    shared.chmod(0o600)
    try:
        with pytest.raises(mlflow.exceptions.MlflowException, match="a token is needed"):
            Registry(replace(settings, tracking_uri=url))
        assert "MLFLOW_TRACKING_TOKEN" not in os.environ
        Registry(replace(settings, tracking_uri=url, tokens_file=shared))
        assert client_of("reader").get_experiment_by_name(EXPERIMENT) is not None
    finally:
        mlflow.set_tracking_uri(before)
