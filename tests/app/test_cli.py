import json

import pytest
import yaml
from typer.testing import CliRunner

from twin.app.cli import app
from twin.core.configuration import FAMILIES, Configuration
from twin.core.tables import TABLES


@pytest.fixture
def twin(settings):
    def call(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return call


def test_every_listed_command_explains_itself(twin):
    for command in app.registered_commands:
        answer = twin(command.callback.__name__, "--help")
        assert answer.exit_code == 0
        assert "Usage" in answer.output


@pytest.mark.parametrize("family", FAMILIES)
def test_the_example_of_a_family_is_a_valid_configuration(twin, family):
    as_yaml = yaml.safe_load(twin("example", family).output)
    as_json = json.loads(twin("example", family, "--json").output)
    assert Configuration.from_flat(as_yaml) == Configuration.from_flat(as_json)


@pytest.mark.parametrize("name", [*FAMILIES, *TABLES])
def test_schema_tells_unit_and_range_of_every_column(twin, name):
    columns = json.loads(twin("schema", name, "--json").output)
    assert all(column["description"] for column in columns)
    if name in FAMILIES:
        clock = next(column for column in columns if column["column"] == "mhz")
        assert (clock["unit"], clock["allowed"], clock["required"]) == ("MHz", "> 0, <= 10000", False)


def test_schema_lists_families_and_tables(twin):
    assert json.loads(twin("schema", "--json").output) == {"families": list(FAMILIES), "tables": list(TABLES)}


@pytest.mark.parametrize(
    "arguments", [("schema", "nothing"), ("example", "nothing"), ("predict", "nothing.csv")]
)
def test_bad_input_is_exit_code_2(twin, arguments):
    assert twin(*arguments).exit_code == 2


def test_predict_without_a_model_says_what_to_do(twin, tmp_path):
    request = tmp_path / "q.jsonl"
    request.write_text(twin("example", "message_flow", "--json").output)
    answer = twin("predict", request)
    assert answer.exit_code == 1
    assert "make run" in answer.output
