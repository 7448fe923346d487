import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.app.describing import defaults_of, fields_named, flat_example
from twin.core.checking import KNOWN, as_texts, check, problems_of
from twin.core.configuration import FAMILIES, Configuration

EXAMPLES = {family: flat_example(family) for family in FAMILIES}
OWN = {family: {field.name: field for field in fields_named(family)} for family in FAMILIES}


def named(draw, family, *kinds):
    """A column of the family that is of one of these kinds, or of any kind where there is none."""
    own = OWN[family].values()
    return draw(st.sampled_from([one.name for one in own if one.kind in kinds] or [*OWN[family]]))


def out_of_range(draw, family, row):
    values = [-1, 0, 0.5, 10**7, 2.0**31, "nan", "inf"]
    return row | {named(draw, family, "integer", "number"): draw(st.sampled_from(values))}


def at_a_limit(draw, family, row):
    name = named(draw, family, "integer", "number")
    limits = [one for one in (KNOWN[name].minimum, KNOWN[name].maximum) if one is not None]
    return row | {name: draw(st.sampled_from([*limits, 1]))}


def text_in_a_number(draw, family, row):
    return row | {named(draw, family, "integer", "number"): draw(st.sampled_from(["many", "4 cpus", "0x4"]))}


def another_text(draw, family, row):
    return row | {named(draw, family, "text"): draw(st.sampled_from(["linux", "none", "None", "topic", "?"]))}


def unknown_column(draw, family, row):
    return row | {draw(st.sampled_from(["cpu", "colour", ""])): "7"}


def column_of_another_family(draw, family, row):
    name = draw(st.sampled_from(sorted(KNOWN.keys() - OWN[family].keys())))
    return row | {name: draw(st.sampled_from(["1", "none", "true"]))}


def left_out(draw, family, row):
    return row | {draw(st.sampled_from(sorted(row))): None}


def flag_in_other_words(draw, family, row):
    words = ["yes", "no", "1", "0", "TRUE", "True", "false", "off", "2", "maybe"]
    return row | {named(draw, family, "flag"): draw(st.sampled_from(words))}


def integer_with_a_point(draw, family, row):
    spelled = ["4.0", "4.5", " 4 ", "04", "4_0", "1e1", "4.", "٤"]
    return row | {named(draw, family, "integer"): draw(st.sampled_from(spelled))}


MUTATIONS = (
    out_of_range, at_a_limit, text_in_a_number, another_text, unknown_column, column_of_another_family,
    left_out, flag_in_other_words, integer_with_a_point,
)  # fmt: skip


@st.composite
def flat_rows(draw):
    family = draw(st.sampled_from(list(FAMILIES)))
    row = EXAMPLES[family]
    for mutation in draw(st.lists(st.sampled_from(MUTATIONS), max_size=2)):
        row = mutation(draw, family, row)
    return row


def cells(row):
    """What a file would hold of a row, by name."""
    texts = as_texts(list(row.values()))
    return {name: text for name, text in zip(row, texts, strict=True) if text is not None}


def checked(rows):
    names = {name for row in rows for name in row if name in KNOWN}
    known = {name: as_texts([row.get(name) for row in rows]) for name in sorted(names)}
    extra = np.full(len(rows), None, dtype=object)
    for at, row in enumerate(rows):
        extra[at] = {name: text for name, text in cells(row).items() if name not in KNOWN} or None
    return check(len(rows), known, extra)


def assert_same_values(columns, at, flat):
    for name, field in KNOWN.items():
        if field.kind in ("integer", "number"):
            assert columns.number(name, absent=-1)[at] == (-1 if flat.get(name) is None else flat[name]), name
        else:
            assert columns.texts(name)[at] == str(flat.get(name)), name


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(flat_rows(), min_size=1, max_size=12))
def test_rows_are_taken_as_the_row_types_take_them(rows):
    found = checked(rows)
    problems = {at: sorted(said) for at, row in enumerate(rows) if (said := problems_of(cells(row)))}
    assert {at: sorted(said) for at, said in found.problems.items()} == problems
    assert found.rows.tolist() == [at for at in range(len(rows)) if at not in problems]
    for at, row in enumerate(found.rows.tolist()):
        assert_same_values(found.columns, at, Configuration.from_flat(cells(rows[row])).flat())


@pytest.mark.parametrize("family", FAMILIES)
def test_an_example_of_each_family_is_taken(family):
    assert checked([EXAMPLES[family]]).rows.tolist() == [0]


@pytest.mark.parametrize("family", [family for family in FAMILIES if defaults_of(family)])
def test_what_a_row_leaves_out_has_its_default(family):
    defaults = defaults_of(family)
    row = {name: value for name, value in EXAMPLES[family].items() if name not in defaults}
    # beside a row that tells all of it: then the columns are there and the cells are empty
    found = checked([row, EXAMPLES[family]])
    assert_same_values(found.columns, 0, Configuration.from_flat(row).flat())
    assert {name: found.columns.row(0, [name])[name] for name in defaults} == defaults


def test_good_rows_keep_their_places_among_bad_ones():
    good, bad = EXAMPLES["message_flow"], EXAMPLES["message_flow"] | {"cpus": "many"}
    found = checked([bad, good | {"cpus": 7}, bad, EXAMPLES["cluster"] | {"cpus": 9}])
    assert found.rows.tolist() == [1, 3]
    assert found.columns.number("cpus").tolist() == [7, 9]
    assert list(found.problems) == [0, 2]


def test_a_family_that_nobody_knows_is_told():
    ((field, reason),) = checked([EXAMPLES["bank"] | {"family": "banks"}]).problems[0]
    assert field == "family"
    assert reason.startswith("'banks' is not known; one of: message_flow")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"cpu": 4}, ("cpu", "unknown column; did you mean cpus?")),
        ({"channel_pairs": 4}, ("channel_pairs", "does not apply to message_flow")),
        ({"node": None}, ("node", "missing: Node under test; trivial is input and output alone")),
        ({"": "not JSON"}, ("", "not JSON")),
    ],
)
def test_the_reason_names_the_column(changes, problem):
    assert checked([EXAMPLES["message_flow"] | changes]).problems == {0: [problem]}
