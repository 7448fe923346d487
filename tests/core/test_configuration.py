import pytest
from pydantic import ValidationError

from twin.app.describing import flat_example
from twin.core.configuration import FAMILIES, Configuration
from twin.core.tables import TABLES


@pytest.mark.parametrize("family", FAMILIES)
def test_flat_form_and_configuration_are_the_same_thing(family):
    configuration = Configuration.from_flat(flat_example(family))
    assert (
        Configuration.from_flat({k: v for k, v in configuration.flat().items() if v is not None})
        == configuration
    )


def test_equal_content_has_equal_id_whatever_its_spelling():
    example = flat_example("message_flow")
    respelt = dict(reversed(example.items())) | {"cpus": "4", "mhz": "900.0", "persistent": "no"}
    assert (
        Configuration.from_flat(respelt).configuration_id == Configuration.from_flat(example).configuration_id
    )


def test_every_column_counts_in_the_id():
    example = flat_example("message_flow")
    other = Configuration.from_flat(example | {"message_bytes": 1})
    assert other.configuration_id != Configuration.from_flat(example).configuration_id


def test_a_default_that_is_spelt_out_changes_nothing():
    example = flat_example("publication")
    left_out = {name: value for name, value in example.items() if name != "instances"}
    assert Configuration.from_flat(left_out) == Configuration.from_flat(example)


def test_unknown_column_is_an_error():
    with pytest.raises(ValidationError, match="colour"):
        Configuration.from_flat(flat_example("message_flow") | {"colour": "red"})


def test_column_of_another_family_is_an_error():
    with pytest.raises(ValidationError, match="subscribers"):
        Configuration.from_flat(flat_example("message_flow") | {"subscribers": 3})


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_table_explains_its_columns_and_has_its_key(table):
    assert all(field.description for field in table.fields)
    assert len(set(table.columns)) == len(table.columns)
    assert set(table.key) <= set(table.columns)
