"""The gate: who is let in to what, from where, with how much."""

from __future__ import annotations

import asyncio
import base64
import socket
import time
from dataclasses import replace

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.websockets import WebSocketDisconnect

from twin.app.page.server import create_app
from twin.app.serving.gate import Gate, Rules
from twin.app.serving.limits import Limit
from twin.app.serving.listening import PatientProtocol
from twin.app.serving.serving import create_serving

SMALL = Rules(service="small", usually=Limit(bytes=1000, seconds=0.3))
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
EVERYWHERE = ("/", "/health", "/ping", "/metrics", "/nothing", "/static/page.js", "/book/index.html",
              "/quality/index.html", "/docs", "/openapi.json", "//", "/%2e%2e/etc/passwd", "/health/",
              "/metrics/x")  # fmt: skip


async def heard(request_body, scope, receive, send):
    """An application that reads all it is sent."""
    more = True
    while more:
        message = await receive()
        request_body.append(message.get("body", b""))
        more = message.get("more_body", False)
    await PlainTextResponse("heard")(scope, receive, send)


async def echo(scope, receive, send):
    await heard([], scope, receive, send)


@pytest.fixture(scope="module", params=["page", "serving"])
def service(request, outside):
    return {"page": create_app, "serving": create_serving}[request.param](outside)


@pytest.fixture(scope="module")
def page(outside):
    return create_app(outside)


def paths_of(gate):
    paths = []
    for route in gate.app.routes:
        at = route.path.replace("{configuration_id}", "x")
        paths.append(f"{at}/anything" if isinstance(route, Mount) else at)
    return paths


def test_nobody_is_let_in_anywhere_without_a_token(service, ask):
    client = ask(service)
    paths = {*paths_of(service), *EVERYWHERE}
    assert len(paths) > 12
    for path in paths:
        for method in METHODS:
            answer = client.request(method, path)
            assert answer.status_code == 401, (method, path)
            assert answer.headers["www-authenticate"].startswith("Basic ")


def test_a_wrong_token_or_scheme_is_no_token(service, ask, tokens):
    reader = tokens["reader"]
    wrong = base64.b64encode(f"operator:{reader}".encode()).decode()
    for header in ("Bearer wrong", reader, f"Token {reader}", f"Basic {reader}", f"Basic {wrong}"):
        assert ask(service).get("/health", headers={"Authorization": header}).status_code == 401, header
    for sent in ({"params": {"token": reader}}, {"cookies": {"token": reader}}):
        assert ask(service, **{k: v for k, v in sent.items() if k == "cookies"}).get(
            "/health", params=sent.get("params")
        ).status_code == 401  # fmt: skip


def test_a_token_lets_in_by_either_scheme(service, ask, tokens, bearer):
    for role in ("reader", "operator"):
        assert ask(service).get("/health", headers=bearer(role)).status_code == 200
        assert ask(service).get("/health", auth=(role, tokens[role])).status_code == 200
        assert ask(service).get("/metrics", headers=bearer(role)).status_code == 200


def test_a_probe_of_this_machine_needs_none_for_the_health_alone(service, ask):
    for peer in ("127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"):
        client = ask(service, peer)
        assert client.get("/health").status_code == 200
        assert client.post("/health").status_code == 401
        for path in ("/", "/metrics", "/health/", "/invocations", "/api/home", "/version"):
            assert client.get(path).status_code == 401, path
    # what a header says of where it comes from is not believed
    forged = {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1", "X-Real-IP": "127.0.0.1"}
    assert ask(service).get("/health", headers=forged).status_code == 401


def test_a_reader_asks_and_an_operator_may_do_more(service, ask, bearer):
    client = ask(service)
    for path in ("/nothing", "/health", "/api/home", "/metrics"):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert client.request(method, path, headers=bearer("reader")).status_code == 403, (method, path)
            assert client.request(method, path, headers=bearer("operator")).status_code in (404, 405)


def test_a_reader_has_the_whole_page(page, ask, bearer):
    client = ask(page)
    for route in page.app.routes:
        for method in getattr(route, "methods", None) or ():
            path = route.path.replace("{configuration_id}", "x")
            answer = client.request(method, path, headers=bearer("reader"), json={})
            assert answer.status_code not in (401, 403), (method, path)


def test_a_websocket_is_not_let_in(service, ask, bearer):
    for headers in ({}, bearer("operator")):
        with pytest.raises(WebSocketDisconnect), ask(service).websocket_connect("/", headers=headers):
            pass


def test_on_this_machine_no_token_is_asked_for_but_its_own_name(settings, ask):
    client = ask(Gate(echo, settings, SMALL), "127.0.0.1")
    for host in ("127.0.0.1", "127.0.0.1:8050", "localhost:1", "LOCALHOST", "[::1]:8050"):
        assert client.get("/", headers={"host": host}).status_code == 200, host
    for host in ("planner.example", "127.0.0.1.planner.example", "localhost.planner.example:8050",
                 "192.0.2.7", "127.0.0.1@planner.example", "[", "", "[::1"):  # fmt: skip
        for path in ("/", "/health", "/metrics"):
            assert client.get(path, headers={"host": host}).status_code == 400, host


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_loopback_addresses_need_no_token(settings, ask, host):
    assert ask(Gate(echo, replace(settings, host=host), SMALL)).get("/").status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "planner.example", "2001:db8::1", "127.1"])
def test_all_other_addresses_and_names_do(settings, ask, host):
    assert ask(Gate(echo, replace(settings, host=host), SMALL)).get("/").status_code == 401


@pytest.mark.parametrize("where", ["settings", "outside"])
def test_another_site_s_page_changes_nothing(request, ask, bearer, where):
    client = ask(Gate(echo, request.getfixturevalue(where), SMALL), "127.0.0.1")
    own = bearer("operator")
    for headers in (
        {"origin": "http://planner.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "null"},
        {"origin": "http://["},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1:8050"},
    ):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert client.request(method, "/", headers=own | headers).status_code == 403, headers
        assert client.get("/", headers=own | headers).status_code == 200
    for headers in (
        {},
        {"origin": "http://127.0.0.1:8050"},
        {"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8050"},
        {"sec-fetch-site": "none"},
    ):
        assert client.post("/", headers=own | headers).status_code == 200, headers


def test_what_nobody_may_is_closed_to_the_operator_too(outside, ask, bearer):
    client = ask(Gate(echo, outside, replace(SMALL, closed=("/closed",))))
    assert client.get("/closed/x", headers=bearer("operator")).status_code == 403
    assert client.get("/open", headers=bearer("operator")).status_code == 200


def test_too_much_is_refused_whatever_stands_behind(settings, ask):
    async def deaf_to_trouble(scope, receive, send):
        try:
            await echo(scope, receive, send)
        except Exception:
            await PlainTextResponse("never mind")(scope, receive, send)

    for app in (echo, deaf_to_trouble):
        client = ask(Gate(app, settings, replace(SMALL, uploads={"/up": Limit(bytes=5000, seconds=1)})))
        assert client.post("/", content=b"x" * 1000).status_code == 200
        assert client.post("/", content=b"x" * 1001).status_code == 413
        assert client.post("/", content=iter([b"x" * 600] * 2)).status_code == 413
        assert client.post("/upload", content=b"x" * 5000).status_code == 200
        assert client.post("/upload", content=b"x" * 5001).status_code == 413


def answered(app, *pieces, then_wait):
    """What one request is told whose body comes like that."""
    sent, left = [], list(pieces)

    async def receive():
        if left:
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left) or then_wait}
        return await asyncio.sleep(30)

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"localhost")]}
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"]


def test_a_body_that_does_not_come_is_not_waited_for(settings):
    started = time.monotonic()
    assert answered(Gate(echo, settings, SMALL), b"a", b"b", then_wait=True) == 408
    assert answered(Gate(echo, settings, SMALL), then_wait=True) == 408
    assert time.monotonic() - started < 5


def test_an_answer_may_take_longer_than_its_question(settings):
    async def slow(scope, receive, send):
        await receive()
        waiting = asyncio.ensure_future(receive())
        await asyncio.sleep(0.6)
        assert not waiting.done()
        waiting.cancel()
        await PlainTextResponse("done")(scope, receive, send)

    assert answered(Gate(slow, settings, SMALL), b"all", then_wait=False) == 200


def figures(text, name, *labels):
    return {
        tuple(one.labels.get(label) for label in labels): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.name == name
    }


def test_requests_are_counted_with_few_labels(settings, ask):
    client = ask(Gate(echo, settings, replace(SMALL, service="counted"), more=lambda: b"more_of_it 1\n"))
    for number in range(50):
        client.get(f"/{number}")
        client.request(f"VERB{number}", f"/{number}", headers={"host": f"{number}.example"})
    text = client.get("/metrics").text
    counted = {
        k: v
        for k, v in figures(text, "twin_requests_total", "service", "method", "status").items()
        if k[0] == "counted"
    }
    assert counted == {("counted", "GET", "200"): 50, ("counted", "other", "400"): 50}
    assert figures(text, "twin_request_seconds_count", "service")["counted",] == 100
    assert text.endswith("more_of_it 1\n")


def test_metrics_are_told_even_if_some_cannot_be(settings, ask, caplog):
    def fails():
        raise RuntimeError("no tables")

    answer = ask(Gate(echo, settings, SMALL, more=fails)).get("/metrics")
    assert answer.status_code == 200
    assert "twin_requests_total" in answer.text
    assert "no tables" in caplog.text


def test_what_fails_behind_the_gate_is_counted_and_raised(settings, ask):
    async def fails(scope, receive, send):
        raise RuntimeError("inside")

    client = ask(Gate(fails, settings, replace(SMALL, service="failing")), raise_server_exceptions=False)
    assert client.get("/").status_code == 500
    counted = figures(client.get("/metrics").text, "twin_requests_total", "service", "status")
    assert counted["failing", "500"] == 1


def test_the_page_s_headers_stand_on_refusals_too(page, ask):
    answer = ask(page).get("/")
    assert answer.status_code == 401
    assert answer.headers["content-security-policy"].startswith("default-src 'self'")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_token_gets_into_a_log_or_an_answer(service, ask, bearer, tokens, caplog):
    caplog.set_level("DEBUG")
    client = ask(service, raise_server_exceptions=False)
    told = ""
    for role in ("reader", "operator"):
        for method, path in (
            ("GET", "/"),
            ("POST", "/nothing"),
            ("GET", "/metrics"),
            ("POST", "/invocations"),
        ):
            headers = bearer(role) | {"x-token": tokens[role]}
            told += client.request(method, path, headers=headers, content=b"{").text
        told += client.get("/", auth=("wrong", tokens[role])).text
    assert not any(token in caplog.text + told for token in tokens.values())


def test_listening_outside_answers_nobody_without_a_token(page, listening, outer_address, bearer):
    with listening(page, outer_address) as url, httpx.Client(base_url=url, trust_env=False) as client:
        for path in (*paths_of(page), *EVERYWHERE):
            assert client.get(path).status_code == 401, path
            assert client.post(path, content=b"{}").status_code == 401, path
        upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
                   "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
        assert client.get("/", headers=upgrade).status_code == 401
        answer = client.get("/health", headers=bearer("reader"))
        assert answer.status_code == 200
        assert "server" not in answer.headers


def test_listening_everywhere_a_probe_of_this_machine_is_answered(page, listening, outer_address):
    with listening(page, "0.0.0.0") as url:
        port = httpx.URL(url).port
        assert httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code == 200
        assert httpx.get(f"http://127.0.0.1:{port}/", trust_env=False).status_code == 401
        assert httpx.get(f"http://{outer_address}:{port}/health", trust_env=False).status_code == 401


def test_who_never_gets_to_the_end_of_a_request_is_hung_up_on(settings, listening, monkeypatch):
    monkeypatch.setattr(PatientProtocol, "seconds_for_a_head", 0.5)
    with listening(Gate(echo, settings, SMALL), "127.0.0.1") as url:
        place = ("127.0.0.1", httpx.URL(url).port)
        for said in (b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "):
            with socket.create_connection(place, timeout=10) as one:
                one.sendall(said)
                assert one.recv(100) == b""
        # one that has asked before and now holds the line
        with socket.create_connection(place, timeout=10) as one:
            one.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert b"200 OK" in one.recv(1000)
            one.sendall(b"GET / HT")
            assert one.recv(1000) == b""


def test_a_head_without_end_is_refused(settings, listening):
    with listening(Gate(echo, settings, SMALL), "127.0.0.1") as url:
        with socket.create_connection(("127.0.0.1", httpx.URL(url).port), timeout=10) as one:
            one.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"x" * 64_000)
            assert b"400 Bad Request" in one.recv(1000)
        assert httpx.get(url, trust_env=False).status_code == 200
