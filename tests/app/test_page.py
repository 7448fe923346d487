"""The page's server: what the front end is told, and what it is told about bad input."""

import csv
import json
import re

import pytest
from fastapi.testclient import TestClient

from features.lake import Lake
from twin.app.describing import fields_named, flat_example
from twin.app.page.server import create_app
from twin.app.page.uploads import MOST_BYTES, MOST_ROWS
from twin.core.configuration import FAMILIES
from twin.core.tables import FINDINGS, MEASUREMENTS

FLOW = flat_example("message_flow")
HUB = flat_example("rules_hub")
JUNK = ["x", "-1", -1, 1e30, "1e999", True, "<script>alert(1)</script>", "../../etc/passwd", "' OR 1=1 --"]


def client_of(settings):
    # what fails in the server is an answer here, as it is for a browser
    return TestClient(create_app(settings), base_url="http://127.0.0.1", raise_server_exceptions=False)


@pytest.fixture(scope="module")
def page(settings_with_all):
    """The five reports with physics alone; the tests in a browser have a champion."""
    with client_of(settings_with_all) as client:
        yield client


@pytest.fixture(scope="module")
def home(page):
    return page.get("/api/home").json()


def problems(answer):
    assert answer.status_code == 422, answer.text
    return {one["field"]: one["reason"] for one in answer.json()["problems"]}


def sizing(**changed):
    return {
        "configuration": HUB,
        "target": 200,
        "boxes": [1, 2],
        "options": {"cpus": [4, 8]},
        "costs": {
            "box": 1, "cpu": 1, "licence_unit": 1, "licence_units_per_cpu": 1, "disk": {"cached": 1}
        },
    } | changed  # fmt: skip


def test_every_family_can_be_started_from(home):
    assert {one["family"] for one in home["families"]} == set(FAMILIES)
    for one in home["families"]:
        assert {field["name"] for field in one["fields"]} | {"family"} == {
            field.name for field in fields_named(one["family"])
        } | {"family"}
        assert one["example"]["family"] == one["family"]


def test_sliders_hold_the_example_and_stay_inside_what_is_allowed(home):
    sliders = 0
    for family in home["families"]:
        for field in family["fields"]:
            slider, value = field["slider"], family["example"].get(field["name"])
            if slider is None:
                continue
            sliders += 1
            assert slider["from"] < slider["to"]
            assert field["minimum"] is None or slider["from"] >= field["minimum"]
            assert field["maximum"] is None or slider["to"] <= field["maximum"]
            assert value is None or slider["from"] <= value <= slider["to"]
    assert sliders > 50


def test_every_measured_configuration_can_be_loaded_and_asked_about(page, home, settings_with_all):
    rows = Lake(settings_with_all).pandas(MEASUREMENTS)
    rows = rows[rows["fact_kind"].eq("measurement") & rows["restates"].isna() & (rows["value"] > 0)]
    assert {one["configuration_id"] for one in home["measured"]} == set(rows["configuration_id"].dropna())
    for one in home["measured"][::97]:
        loaded = page.get(f"/api/configurations/{one['configuration_id']}").json()["configuration"]
        assert loaded["family"] == one["family"]
        assert page.post("/api/curve", json={"configuration": loaded}).status_code == 200


def test_measured_points_beside_a_curve_are_rows_of_the_table(page, settings_with_all):
    rows = Lake(settings_with_all).pandas(MEASUREMENTS)
    told = page.post("/api/curve", json={"configuration": FLOW, "along": "message_bytes"}).json()
    assert len(told["measured"]) >= 3
    for point in told["measured"]:
        (row,) = rows[
            (rows["source_id"] == point["source_id"])
            & (rows["line"] == point["line"])
            & (rows["metric"] == "throughput_msgs_per_s")
        ].to_dict("records")
        assert (row["value"], row["printed"], row["message_bytes"]) == (
            point["value"], point["printed"], point["x"],
        )  # fmt: skip
        assert point["x"] in [one["x"] for one in told["points"]]


def test_times_of_a_report_are_points_of_a_rate(page, settings_with_all):
    fan_out = flat_example("fan_out")
    told = page.post("/api/curve", json={"configuration": fan_out, "along": "subscribers"}).json()
    assert told["measured"]
    rows = Lake(settings_with_all).pandas(MEASUREMENTS)
    for point in told["measured"]:
        here = rows[(rows["line"] == point["line"]) & (rows["configuration_id"] == point["configuration_id"])]
        times = here[here["metric"] == "elapsed_ms"]["value"]
        assert point["value"] in [pytest.approx(1000 / time) for time in times]


def test_a_curve_goes_through_the_configuration_and_tells_what_limits_it(page):
    asked = {"configuration": HUB, "along": "queue_managers"}
    told = page.post("/api/curve", json=asked).json()
    here = next(one for one in told["points"] if one["x"] == HUB["queue_managers"])
    assert here["answers"] == told["here"]["answers"]
    assert told["here"]["bottleneck"] == "cpu"
    assert told["here"]["utilisation"]["cpu"] > 0.8
    assert [turn["after"] for turn in told["turns"]] == ["cpu"]
    assert told["along"]["name"] == "queue_managers"


@pytest.mark.parametrize("along", ["disk_layout", "failed_over"])
def test_a_curve_along_choices(page, along):
    told = page.post("/api/curve", json={"configuration": HUB, "along": along}).json()
    assert all(isinstance(one["x"], str) for one in told["points"])
    assert len(told["points"]) >= 2


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_answers_or_says_why_not(page, family):
    told = page.post("/api/curve", json={"configuration": flat_example(family)}).json()
    (answer,) = told["here"]["answers"].values()
    assert answer.get("excuse") or answer["lo90"] <= answer["value"] <= answer["hi90"]
    advice = page.post("/api/advice", json={"configuration": flat_example(family)})
    assert advice.status_code == 200


@pytest.mark.parametrize("field", [one.name for one in fields_named("message_flow") if one.name != "family"])
def test_bad_values_of_a_field_are_told_beside_it(page, settings_with_all, field):
    for value in JUNK:
        for path, extra in (("/api/curve", {}), ("/api/advice", {}), ("/api/size", sizing())):
            asked = extra | {"configuration": FLOW | {field: value}}
            answer = page.post(path, json=asked)
            assert answer.status_code in (200, 422), (path, value, answer.text)
            assert str(settings_with_all.home) not in answer.text
            assert "Traceback" not in answer.text
            if answer.status_code == 422:
                assert set(problems(answer)) <= {field, "options"}


def test_what_is_missing_or_unknown_is_named(page):
    flat = {name: value for name, value in FLOW.items() if name != "node"}
    assert set(problems(page.post("/api/curve", json={"configuration": flat}))) == {"node"}
    told = problems(page.post("/api/curve", json={"configuration": FLOW | {"message_byte": 1}}))
    assert "did you mean message_bytes" in told["message_byte"]
    assert "family" in problems(page.post("/api/curve", json={"configuration": {"family": "x"}}))
    assert "along" in problems(page.post("/api/curve", json={"configuration": FLOW, "along": "os2"}))
    assert "metric" in problems(page.post("/api/curve", json={"configuration": FLOW, "metric": "beauty"}))
    assert "along" in problems(page.post("/api/curve", json={"configuration": FLOW, "along": "product"}))


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"target": ""}, "target"),
        ({"target": 0}, "target"),
        ({"target": None}, "target"),
        ({"confidence": 1}, "confidence"),
        ({"confidence": "sure"}, "confidence"),
        ({"ceiling_pct": 120}, "ceiling_pct"),
        ({"growth_pct": -3}, "growth_pct"),
        ({"one_box_lost": "perhaps"}, "one_box_lost"),
        ({"boxes": []}, "boxes"),
        ({"boxes": [0]}, "boxes"),
        ({"boxes": ["two"]}, "boxes"),
        ({"options": {"speed": [1]}}, "options.speed"),
        ({"options": {"cpus": []}}, "options.cpus"),
        ({"options": {"cpus": [None]}}, "options.cpus"),
        ({"options": {"cpus": list(range(1, 200)), "queue_managers": list(range(1, 200))}}, "options"),
        ({"costs": {}}, "costs.box"),
        ({"costs": sizing()["costs"] | {"cpu": "much"}}, "costs.cpu"),
        ({"costs": sizing()["costs"] | {"disk": {"cached": -1}}}, "costs.disk.cached"),
        ({"configuration": HUB | {"failed_over": True}, "one_box_lost": True}, "failed_over"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_bad_input_of_the_sizing_form(page, changed, field):
    assert field in problems(page.post("/api/size", json=sizing(**changed)))


def test_a_sizing_has_its_cheapest_and_its_reasons(page):
    told = page.post("/api/size", json=sizing(target=250)).json()
    assert told["accepted"][0]["holds"]
    assert all(one["reason"] for one in told["rejected"])
    assert sum(one["options"] for one in told["rejected_by_reason"]) == len(told["rejected"])
    assert told["sensitivity"][0]["change"] == {"cpus": 8}


def test_a_batch_with_one_bad_row(page):
    lines = [json.dumps(FLOW | {"request_id": "good"}), json.dumps(FLOW | {"cpus": 0, "request_id": "bad"})]
    answer = page.post(
        "/api/batch?name=C:\\fakepath\\ask.jsonl&predictor=analytic", content="\n".join(lines).encode()
    )
    told = answer.json()
    assert (told["answered"], told["excused"], told["rejected"]) == (1, 0, 1)
    assert [one["request_id"] for one in told["answers"]] == ["good"]
    assert [(one["row"], one["field"]) for one in told["rejects"]] == [(2, "cpus")]
    assert [row["request_id"] for row in csv.DictReader(told["csv"].splitlines())] == ["good"]


@pytest.mark.parametrize(
    ("name", "content", "field"),
    [
        ("ask.exe", b"x", "file"),
        ("ask", b"", "file"),
        ("ask.csv", b"", "file"),
        ("ask.csv", b"family,family\nx,y\n", "file"),
        ("ask.csv", b"\xff\xfe\x00", "file"),
        ("ask.csv", b'family\n"unclosed', "file"),
        ("ask.parquet", b"not a parquet file", "file"),
        ("ask.csv&predictor=guess", b"family\nmessage_flow\n", "predictor"),
        ("ask.csv&predictor=analytic&target=beauty", b"family\nmessage_flow\n", "target"),
        ("ask.csv", b"family\n" + b"message_flow\n" * (MOST_ROWS + 1), "file"),
    ],
)
def test_bad_uploads_are_refused_with_the_reason(page, name, content, field):
    if "predictor" not in name:
        name += "&predictor=analytic"
    told = problems(page.post(f"/api/batch?name={name}", content=content))
    assert field in told
    # what the file is called on the server is nobody's business
    assert "tmp" not in told[field]


def test_too_much_is_refused_whatever_the_header_says(page):
    answer = page.post("/api/batch?name=ask.csv", content=b"x" * (MOST_BYTES + 1))
    assert answer.status_code == 413
    assert "larger" in answer.json()["problems"][0]["reason"]

    def pieces():
        for _ in range(60):
            yield b"x" * 100_000

    assert page.post("/api/batch?name=ask.csv", content=pieces()).status_code == 413
    body = b'{"configuration": {"family": "' + b"x" * 300_000 + b'"}}'
    json_type = {"content-type": "application/json"}
    assert page.post("/api/curve", content=body, headers=json_type).status_code == 413


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b'{"configuration": 3}', b"\xff"])
def test_a_body_that_is_no_question_is_refused(page, body):
    answer = page.post("/api/curve", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert "Traceback" not in answer.text


def test_findings_are_those_of_the_table(page, settings_with_all):
    told = page.get("/api/findings").json()["findings"]
    assert len(told) == len(Lake(settings_with_all).pandas(FINDINGS))
    assert {"rule", "severity", "source_id", "line", "printed", "expected", "message"} <= set(told[0])


def test_unknown_addresses_and_configurations_are_told_in_a_sentence(page):
    for path in ("/api/nothing", "/api/configurations/0123456789abcdef", "/static/nothing.js"):
        answer = page.get(path)
        assert answer.status_code == 404
        assert set(answer.json()) == {"problem"}
    assert page.get("/static/..%2fserver.py").status_code == 404


def test_only_this_machine_s_own_names_are_answered(page):
    assert page.get("/", headers={"host": "planner.example"}).status_code == 400
    assert page.get("/", headers={"host": "localhost:8050"}).status_code == 200


def test_nothing_may_come_from_elsewhere(page):
    for path in ("/", "/api/home", "/static/page.js", "/api/nothing"):
        policy = page.get(path).headers["content-security-policy"]
        assert policy.startswith("default-src 'self'")
    assert not re.findall(r'(?:src|href|action)="(?:https?:)?//', page.get("/").text)
    assert len(page.get("/static/plotly.min.js").content) > 1_000_000


def test_a_home_without_tables_says_what_to_do(settings):
    with client_of(settings) as client:
        told = client.get("/api/home").json()
        assert told["model"] is None
        assert "make run" in told["problem"]
        answer = client.post("/api/curve", json={"configuration": FLOW})
        assert answer.status_code == 503
        assert "make run" in answer.json()["problem"]
        assert client.get("/api/findings").status_code == 503
        assert client.get("/health").json() == {"status": "healthy"}
    # asking makes nothing
    assert not settings.home.exists()


def test_what_fails_inside_is_logged_and_not_told(settings_with_all, monkeypatch, caplog):
    def fails(*_):
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr("twin.app.page.server.advise", fails)
    with client_of(settings_with_all) as client:
        answer = client.post("/api/advice", json={"configuration": FLOW})
    assert answer.status_code == 500
    assert set(answer.json()) == {"problem"}
    assert "secret" not in answer.text
    assert "a secret of the inside" in caplog.text
