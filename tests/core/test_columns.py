import numpy as np
import pytest

from twin.app.describing import flat_example
from twin.core.columns import ABSENT, Columns
from twin.core.configuration import Configuration

OS = ["solaris", "aix", None, "aix"]
LAYOUT = ["striped", None, "striped", None]
CPUS = [4, None, 8, 1]
PERSISTENT = [True, False, None, True]


def columns():
    return Columns.from_mapping(
        4, {"os": OS, "disk_layout": LAYOUT, "cpus": CPUS, "persistent": np.array(PERSISTENT, dtype=object)}
    )


def test_what_is_missing_among_numbers_is_not_a_number():
    np.testing.assert_array_equal(columns().number("cpus"), [4, np.nan, 8, 1])


def test_missing_numbers_can_be_given_a_value():
    np.testing.assert_array_equal(columns().number("cpus", absent=2), [4, 2, 8, 1])


def test_a_value_for_missing_numbers_is_not_remembered():
    one = columns()
    one.number("cpus", absent=2)
    assert np.isnan(one.number("cpus")[1])


def test_flags_are_numbers_zero_and_one():
    np.testing.assert_array_equal(columns().number("persistent"), [1, 0, np.nan, 1])


def test_a_missing_flag_is_not_set():
    assert columns().flag("persistent").tolist() == [True, False, False, True]


def test_labels_of_one_column_are_in_the_order_of_their_first_rows():
    labels, codes = columns().labels("os")
    assert labels == ["solaris", "aix", ABSENT]
    assert codes.tolist() == [0, 1, 2, 1]


def test_labels_of_several_columns_are_joined_by_a_slash():
    assert columns().texts("os", "disk_layout", "cpus").tolist() == [
        "solaris/striped/4", "aix/None/None", "None/striped/8", "aix/None/1",
    ]  # fmt: skip


def test_labels_of_several_columns_are_distinct():
    labels, codes = columns().labels("os", "disk_layout")
    assert sorted(labels) == ["None/striped", "aix/None", "solaris/striped"]
    assert codes[1] == codes[3]


@pytest.mark.parametrize("names", [("os",), ("cpus",), ("persistent",), ("os", "cpus", "persistent")])
def test_few_rows_and_many_have_the_same_codes(names):
    few = columns()
    many = Columns.from_mapping(400, {"os": OS * 100, "cpus": CPUS * 100, "persistent": PERSISTENT * 100})
    labels, codes = few.labels(*names)
    assert many.labels(*names)[0] == labels
    assert many.labels(*names)[1].tolist() == codes.tolist() * 100


@pytest.mark.parametrize("times", [1, 100])
def test_values_that_read_alike_have_one_label(times):
    found, codes = Columns.from_mapping(4 * times, {"version": [1, "1", None, "None"] * times}).labels(
        "version"
    )
    assert found == ["1", ABSENT]
    assert codes.tolist() == [0, 0, 1, 1] * times


def test_the_missing_of_a_float_array_are_one_label():
    values = {"mhz": np.array([np.nan, 900.0, np.nan, 333.3])}
    found = Columns.from_mapping(4, values)
    assert found.labels("mhz")[0].count(ABSENT) == 1
    assert found.texts("mhz").tolist() == [ABSENT, "900", ABSENT, "333.3"]


def test_a_column_is_compared_with_several_values():
    assert columns().is_("os", "solaris", "linux").tolist() == [True, False, False, False]
    assert columns().is_("os", "solaris", "aix").tolist() == [True, True, False, True]


def test_some_rows_keep_their_order_and_may_repeat():
    some = columns().only(np.array([3, 0, 0]))
    assert some.size == 3
    assert some.texts("os").tolist() == ["aix", "solaris", "solaris"]
    np.testing.assert_array_equal(some.number("cpus"), [1, 4, 4])
    np.testing.assert_array_equal(some.number("persistent"), [1, 1, 1])


def test_some_rows_are_the_same_whether_the_whole_was_looked_at_before_or_not():
    rows = np.array([2, 1, 2, 0])
    known = columns()
    known.number("cpus"), known.labels("os"), known.labels("os", "disk_layout")
    cached, fresh = known.only(rows), columns().only(rows)
    np.testing.assert_array_equal(cached.number("cpus"), fresh.number("cpus"))
    for names in (("os",), ("os", "disk_layout"), ("disk_layout", "os")):
        assert cached.texts(*names).tolist() == fresh.texts(*names).tolist()
    assert cached.is_("os", "aix").tolist() == fresh.is_("os", "aix").tolist()


def test_no_rows_at_all_have_no_values():
    none = columns().only(np.array([], dtype=np.int64))
    assert none.texts("os", "cpus").tolist() == []
    assert none.is_("os", "aix").tolist() == []
    assert none.number("cpus").tolist() == []


@pytest.mark.parametrize("looked_at", [False, True])
def test_a_column_can_be_taken_away(looked_at):
    one = columns()
    if looked_at:
        one.number("cpus"), one.labels("cpus"), one.labels("os", "cpus")
    left = one.without("cpus")
    assert np.isnan(left.number("cpus")).all()
    assert left.texts("os", "cpus").tolist() == ["solaris/None", "aix/None", "None/None", "aix/None"]
    assert left.texts("os").tolist() == one.texts("os").tolist()
    np.testing.assert_array_equal(one.number("cpus"), [4, np.nan, 8, 1])


def test_a_row_has_plain_values():
    values = {
        "cpus": np.array([4.0]), "mhz": np.array([333.3]), "disks": np.array([np.nan]), "os": ["aix"],
        "persistent": np.array([True]),
    }  # fmt: skip
    row = Columns.from_mapping(1, values).row(0, [*values, "machine"])
    assert row == {"cpus": 4, "mhz": 333.3, "disks": None, "os": "aix", "persistent": True, "machine": None}
    assert [type(value) for value in row.values()] == [int, float, type(None), str, bool, type(None)]


def test_a_column_that_nobody_has_is_missing_everywhere():
    assert np.isnan(columns().number("disks")).all()
    assert columns().number("disks", absent=1).tolist() == [1, 1, 1, 1]
    assert columns().texts("machine").tolist() == [ABSENT] * 4
    assert not columns().flag("tuned").any()
    assert columns().row(0, ["machine"]) == {"machine": None}


def test_configurations_become_columns_in_their_order():
    found = Columns.of([Configuration.from_flat(flat_example(one)) for one in ("message_flow", "cluster")])
    assert found.texts("family").tolist() == ["message_flow", "cluster"]
    assert found.is_("node", "compute").tolist() == [True, False]
