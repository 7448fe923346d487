"""size and advise on the calibrated reports, as a planner calls them."""

import json

import pytest

from twin.app.costs import CostModel, read_costs
from twin.app.describing import example_yaml


@pytest.fixture
def hub(tmp_path):
    path = tmp_path / "hub.yaml"
    path.write_text(example_yaml("rules_hub"))
    return path


def test_the_cheapest_and_why_not_as_table_and_as_json(twin_with_all, hub):
    asked = ("size", hub, "--target", "300", "--growth", "3", "--one-box-lost")
    answer = twin_with_all(*asked)
    assert answer.exit_code == 0, answer.output
    for words in ("the cheapest that hold", "what a single change buys", "too slow", "months"):
        assert words in answer.output
    told = json.loads(twin_with_all(*asked, "--json").output)
    costs = [one["cost"] for one in told["accepted"]]
    assert costs == sorted(costs)
    assert told["accepted"][0]["sure_rate"] >= 300
    assert all(one["reason"] for one in told["rejected"])
    assert len(told["accepted"]) + len(told["rejected"]) + told["dearer"] == told["examined"]


def test_nothing_that_holds_is_exit_code_1_with_the_reasons(twin_with_all, hub):
    answer = twin_with_all("size", hub, "--target", "100000", "--vary", "cpus=4,8", "--boxes", "1..2:2")
    assert answer.exit_code == 1
    assert "none of 4 options holds" in answer.output
    assert "msgs/s expected" in answer.output


def test_the_cost_model_that_is_shown_can_be_edited_and_given(twin_with_all, hub, tmp_path):
    file = tmp_path / "costs.yaml"
    file.write_text(twin_with_all("size", "--show-costs").output.replace("box: 20000", "box: 1"))
    assert isinstance(read_costs(file), CostModel)
    asked = ("size", hub, "--target", "150", "--json")
    usual, cheap = (
        json.loads(twin_with_all(*asked, *more).output)["accepted"][0]["cost"]
        for more in ((), ("--costs", file))
    )
    assert cheap < usual


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("{hub}",), "--target"),
        (("{hub}", "--target", "0"), "target"),
        (("{hub}", "--target", "9", "--confidence", "1"), "confidence"),
        (("{hub}", "--target", "9", "--ceiling", "0"), "ceiling"),
        (("{hub}", "--target", "9", "--growth", "-1"), "growth"),
        (("{hub}", "--target", "9", "--boxes", "two"), "boxes"),
        (("{hub}", "--target", "9", "--boxes", "0"), "boxes"),
        (("{hub}", "--target", "9", "--vary", "speed=1"), "speed"),
        (("{hub}", "--target", "9", "--costs", "{hub}"), "not a cost model"),
        (("nothing.yaml", "--target", "9"), "nothing.yaml"),
    ],
)
def test_bad_input_is_exit_code_2_with_the_field(twin_with_all, hub, arguments, reason):
    answer = twin_with_all("size", *(one.format(hub=hub) for one in arguments))
    assert answer.exit_code == 2, answer.output
    assert reason in answer.output


def test_advice_names_its_lines_and_what_it_brings(twin_with_all, tmp_path):
    path = tmp_path / "hub.yaml"
    slow = example_yaml("rules_hub").replace("log_disk: cached", "log_disk: fc_al")
    path.write_text(slow.replace("disk_layout: dedicated", "disk_layout: striped"))
    answer = twin_with_all("advise", path)
    assert answer.exit_code == 0, answer.output
    assert "mqsi-v11-solaris line" in answer.output
    told = json.loads(twin_with_all("advise", path, "--json").output)
    cached = next(one for one in told["advice"] if one["change"] == {"log_disk": "cached"})
    assert cached["after"] > cached["before"]
    assert cached["sources"]


def test_advice_on_what_is_no_configuration(twin_with_all):
    assert twin_with_all("advise", "nothing.yaml").exit_code == 2


def test_without_tables_it_says_what_to_run(hub, settings):
    from typer.testing import CliRunner

    from twin.app.cli import app

    for asked in (["size", str(hub), "--target", "9"], ["advise", str(hub)]):
        answer = CliRunner().invoke(app, asked)
        assert answer.exit_code == 1
        assert "make run" in answer.output
