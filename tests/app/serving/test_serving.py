"""The champion over HTTP: what it answers, how it is followed, what is refused."""

from __future__ import annotations

import io
import json
import sys
import threading
from dataclasses import replace

import httpx
import pandas as pd
import pytest
from prometheus_client import REGISTRY

from training.registry import CHAMPION, MODEL, Registry
from twin.app.describing import flat_example
from twin.app.services import Health, end, healthy, own_service, start
from twin.app.serving.champion import MOST_ROWS, Champion
from twin.app.serving.serving import create_serving

HUB = flat_example("rules_hub")


@pytest.fixture(scope="module")
def champion(settings, register):
    """Looked up when a test says so, not by the clock."""
    register()
    found = Champion(settings)
    found.follow = found.look
    return found


@pytest.fixture(scope="module")
def served(settings, champion, ask):
    champion.look()
    with ask(create_serving(settings, champion), "127.0.0.1") as client:
        yield client


def records(*rows, **params):
    return {"dataframe_records": list(rows)} | ({"params": params} if params else {})


def test_until_there_is_a_champion_it_says_so(tmp_path, settings, ask):
    empty = replace(settings, home=tmp_path / "home", tracking_uri=f"sqlite:///{tmp_path}/none.db")
    with ask(create_serving(empty), "127.0.0.1") as client:
        for answer in (client.get("/ping"), client.post("/invocations", json=records({"a": 1}))):
            assert answer.status_code == 503
            assert "no champion yet" in answer.json()["problem"]
        assert client.get("/health").json() == {"status": "waiting", "note": "for a model to serve"}
    # looking makes nothing
    assert not empty.home.exists()
    assert not (tmp_path / "none.db").exists()


def test_it_answers_as_mlflow_s_own_server_does(served):
    import mlflow
    from mlflow.pyfunc.scoring_server import CONTENT_TYPE_PARQUET

    assert served.get("/ping").status_code == 200
    assert served.get("/health").json() == {"status": "healthy", "note": "version 1"}
    assert served.get("/version").text == mlflow.__version__
    expected = {"predictions": [{"a": 1, "version": 1}, {"a": 2, "version": 1}]}
    assert served.post("/invocations", json=records({"a": 1}, {"a": 2})).json() == expected
    split = {"dataframe_split": {"columns": ["a"], "data": [[1], [2]]}}
    assert served.post("/invocations", json=split).json() == expected
    csv = served.post("/invocations", content="a\n1\n2\n", headers={"content-type": "text/csv"})
    assert csv.json() == expected
    file = io.BytesIO()
    pd.DataFrame({"a": [1, 2]}).to_parquet(file)
    kind = {"content-type": CONTENT_TYPE_PARQUET}
    assert served.post("/invocations", content=file.getvalue(), headers=kind).json() == expected


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"null", "application/json", 400),
        (b"[1]", "application/json", 400),
        (b'{"rows": []}', "application/json", 400),
        (b'{"dataframe_records": 3}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"\xff\xfe", "text/csv", 400),
        (b"not parquet", "application/parquet", 415),
        (b"{}", "application/xml", 415),
        (b"{}", "application/json; charset=latin-1", 415),
        (b"{}", "", 415),
    ],
)
def test_what_is_no_request_is_refused_without_the_inside(served, content, kind, status):
    answer = served.post("/invocations", content=content, headers={"content-type": kind})
    assert answer.status_code == status, answer.text
    assert "Traceback" not in answer.text
    assert "site-packages" not in answer.text


def test_too_many_rows_are_refused(served):
    many = records(*[{"a": 1}] * (MOST_ROWS + 1))
    answer = served.post("/invocations", json=many)
    assert answer.status_code == 400
    assert "rows are more than" in answer.text
    assert served.post("/invocations", json=records(*[{"a": 1}] * MOST_ROWS)).status_code == 200
    assert served.post("/invocations", content=b"x" * 8_000_001).status_code == 413


@pytest.mark.parametrize("before", [b"", b"\xa0"])
def test_parquet_is_looked_into_before_it_is_unpacked(before, champion, served, listening, settings):
    """Also where its name begins with a space that is none to a header, but to MLflow."""
    from mlflow.pyfunc.scoring_server import CONTENT_TYPE_PARQUET

    file = io.BytesIO()
    pd.DataFrame({"a": pd.Series([1] * 2_000_000)}).to_parquet(file)
    assert len(file.getvalue()) < 1_000_000
    headers = {b"content-type": before + CONTENT_TYPE_PARQUET.encode()}
    with listening(create_serving(settings, champion), "127.0.0.1") as url:
        bomb = httpx.post(f"{url}/invocations", content=file.getvalue(), headers=headers, trust_env=False)
    assert bomb.status_code == 400
    assert "2,000,000 rows; at most 10,000 are read" in bomb.text


def test_a_new_champion_takes_over_and_no_request_fails(champion, served, register, listening, settings):
    from mlflow import MlflowClient

    stop, seen, failed = threading.Event(), [], []

    def ask_all_the_time(url):
        with httpx.Client(trust_env=False) as client:
            while not stop.is_set():
                try:
                    answer = client.post(f"{url}/invocations", json=records({"a": 1})).raise_for_status()
                    seen.append(answer.json()["predictions"][0]["version"])
                except httpx.HTTPError as error:
                    failed.append(error)

    with listening(create_serving(settings, champion), "127.0.0.1") as url:
        clients = [threading.Thread(target=ask_all_the_time, args=(url,)) for _ in range(4)]
        for one in clients:
            one.start()
        try:
            for _ in range(2):
                version = register()
                champion.look()
                assert champion.served.version == version
                # what was registered and not promoted is not served
                register(champion=False)
                champion.look()
                assert champion.served.version == version
            MlflowClient().set_registered_model_alias(MODEL, CHAMPION, "1")
            champion.look()
        finally:
            stop.set()
            for one in clients:
                one.join()
        last = httpx.post(f"{url}/invocations", json=records({"a": 1}), trust_env=False).json()
    assert failed == []
    assert set(seen) == {1, 2, 4}
    assert len(seen) > 50
    assert last["predictions"][0]["version"] == 1


def test_what_is_served_stays_when_the_registry_is_away_or_has_a_broken_model(
    champion, served, register, monkeypatch, tmp_path, caplog
):
    def away(*_):
        raise OSError("nobody there\nwith a password")

    before = champion.served
    with monkeypatch.context() as patch:
        patch.setattr(Registry, "version_of", away)
        champion.look()
    assert "nobody there" in caplog.text
    assert "password" not in caplog.text
    with monkeypatch.context() as patch:
        patch.setattr("mlflow.pyfunc.load_model", away)
        register()
        champion.look()
    assert champion.served is before
    assert served.post("/invocations", json=records({"a": 1})).status_code == 200
    champion.look()
    assert champion.served.version != before.version


def test_the_failure_of_a_model_is_logged_and_not_told(champion, served, monkeypatch, caplog):
    def fails(*_, **__):
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(champion.served.model, "_model", type("Failing", (), {"predict": fails}))
    answer = served.post("/invocations", json=records({"a": 1}))
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "a secret of the inside" in caplog.text


def test_off_loopback_a_reader_asks_for_predictions(outside, champion, ask, bearer, listening, outer_address):
    gate = create_serving(outside, champion)
    with listening(gate, outer_address) as url, httpx.Client(base_url=url, trust_env=False) as client:
        for path in ("/invocations", "/ping", "/health", "/version", "/metrics", "/", "/docs", "/x"):
            for method in ("GET", "POST", "PUT"):
                assert client.request(method, path, json=records({"a": 1})).status_code == 401, path
        asked = client.post("/invocations", json=records({"a": 1}), headers=bearer("reader"))
        assert asked.status_code == 200
        assert client.put("/invocations", headers=bearer("reader")).status_code == 403


@pytest.fixture(scope="module")
def twin_model(small_model, tmp_path_factory):
    """The real thing as MLflow keeps it."""
    import mlflow

    from training import served_model
    from training.registry import signature

    folder = tmp_path_factory.mktemp("twin")
    (folder / "files").mkdir()
    small_model.save(folder / "files")
    mlflow.pyfunc.save_model(
        str(folder / "model"),
        python_model=served_model.__file__,
        artifacts={"model": str(folder / "files")},
        signature=signature(),
        pip_requirements=[],
    )
    return folder / "model"


def test_loading_a_model_unpickles_nothing(twin_model):
    import mlflow

    watching, unpickled = True, []

    def hook(event, arguments):
        if watching and event == "pickle.find_class":
            unpickled.append(arguments)

    sys.addaudithook(hook)
    model = mlflow.pyfunc.load_model(str(twin_model))
    watching = False
    assert unpickled == []
    asked = {name: float(one) if type(one) is int else one for name, one in HUB.items()}
    assert model.predict(pd.DataFrame([asked]))["value"][0] > 0
    kept = {one.suffix for one in twin_model.rglob("*") if one.is_file()}
    assert kept <= {".py", ".json", ".yaml", ".yml", ".txt", ".ubj", ".npz", ".parquet", ""}
    assert not {".pkl", ".pickle", ".joblib"} & kept


def counted(outcome):
    return REGISTRY.get_sample_value("twin_predictions_total", {"outcome": outcome}) or 0.0


def test_answers_excuses_and_rejects_are_counted(settings, twin_model, ask, monkeypatch):
    import mlflow

    from twin.app.serving.champion import CountedModel, Served

    found = Champion(settings)
    found.follow = lambda: None
    found.served = Served("1", CountedModel(mlflow.pyfunc.load_model(str(twin_model))))
    before = {one: counted(one) for one in ("answered", "excused", "rejected")}
    times = REGISTRY.get_sample_value("twin_prediction_seconds_count")
    unknown = flat_example("message_flow") | {"node": "aggregation"}
    with ask(create_serving(settings, found), "127.0.0.1") as client:
        answer = client.post("/invocations", json=records(HUB, HUB, unknown, HUB | {"cpus": -1}))
        assert answer.status_code == 200, answer.text
        told = client.get("/metrics").text
    excuses = [one["excuse"] for one in answer.json()["predictions"]]
    assert [one is None for one in excuses] == [True, True, False, False]
    assert {one: counted(one) - before[one] for one in before} == {"answered": 2, "excused": 1, "rejected": 1}
    assert REGISTRY.get_sample_value("twin_prediction_seconds_count") == times + 1
    assert 'twin_predictions_total{outcome="excused"}' in told


def test_json_answers_are_json(served):
    answer = served.post("/invocations", json=records({"a": None}))
    assert json.loads(answer.text)["predictions"][0]["a"] is None


def test_the_platform_asks_for_its_health_with_a_token(outside, champion, listening, outer_address, tmp_path):
    there = replace(outside, host=outer_address)
    with listening(create_serving(there, champion), outer_address) as url:
        service = own_service(there, "serving", "serve", httpx.URL(url).port, "/invocations")
        assert service.url == f"{url}/invocations"
        assert service.health_token not in repr(service)
        standing_in = replace(service, command=("sleep", "60"), log=tmp_path / "log")
        running = start(standing_in)
        try:
            told = Health("healthy", f"version {champion.served.version}")
            assert healthy([running]) == {"serving": told}
            running.service = replace(standing_in, health_token=None)
            assert healthy([running]) == {}
        finally:
            end([running])


def test_where_all_addresses_are_listened_on_this_machine_s_own_is_asked(outside):
    service = own_service(outside, "serving", "serve", 5001)
    assert (service.health_url, service.health_token) == ("http://127.0.0.1:5001/health", None)
