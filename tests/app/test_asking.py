"""Configurations and variations as a person writes them."""

import pytest

from twin.app.asking import BadQuestion, read_configuration, read_variation, varied
from twin.app.describing import example_yaml


@pytest.fixture
def flow(tmp_path):
    path = tmp_path / "flow.yaml"
    path.write_text(example_yaml("message_flow"))
    return str(path)


def test_a_list_and_a_range_of_values():
    assert read_variation("node=filter,compute").values == ("filter", "compute")
    assert read_variation("cpus=1..4:4").values == (1, 2, 3, 4)
    assert read_variation("message_bytes=1..10000:5").values == (1, 10, 100, 1000, 10000)
    assert read_variation("mhz=100..200:3").values == (100.0, 150.0, 200.0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("cpus", "field=a,b,c"),
        ("cpus=", "field=a,b,c"),
        ("cpu=1,2", "cpu: unknown field"),
        ("node=1..3", "node: a range needs numbers"),
        ("cpus=4..1", "cpus:"),
        ("cpus=1..4:1", "cpus:"),
        ("cpus=1..4:99999999", "cpus:"),
    ],
)
def test_what_is_no_variation_is_told(text, reason):
    with pytest.raises(BadQuestion, match=reason):
        read_variation(text)


def test_every_combination(flow, settings):
    base = read_configuration(flow, settings)
    found = varied(base, [read_variation("cpus=1,2"), read_variation("node=filter,trivial,mapping")])
    assert len(found) == 6
    assert found[0][0] == {"cpus": 1, "node": "filter"}
    assert (found[5][1]["cpus"], found[5][1]["node"]) == (2, "mapping")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("cpus=0", "cpus"),
        ("message_bytes=-1", "message_bytes"),
        ("node=teleport", "node"),
        ("subscribers=5", "does not apply"),
    ],
)
def test_a_value_that_no_configuration_has_names_its_field(flow, settings, change, reason):
    with pytest.raises(BadQuestion, match=reason):
        varied(read_configuration(flow, settings), [read_variation(change)])


def test_too_many_combinations_are_refused(flow, settings):
    many = [read_variation("cpus=1..900:900"), read_variation("message_bytes=1..900:900")]
    with pytest.raises(BadQuestion, match="combinations; at most"):
        varied(read_configuration(flow, settings), many)


@pytest.mark.parametrize(
    ("content", "reason"),
    [("[1, 2]", "not an object"), ("a: [", "not YAML"), ("family: flying", "family"), ("cpus: 4", "family")],
)
def test_a_file_that_is_no_configuration_is_refused(tmp_path, settings, content, reason):
    path = tmp_path / "wrong.yaml"
    path.write_text(content)
    with pytest.raises(BadQuestion, match=reason):
        read_configuration(str(path), settings)


def test_neither_file_nor_id(settings):
    with pytest.raises(BadQuestion, match="neither a file nor"):
        read_configuration("nowhere.yaml", settings)
    with pytest.raises(BadQuestion, match="0123456789abcdef"):
        read_configuration("0123456789abcdef", settings)
