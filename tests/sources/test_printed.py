import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.sources.formula import BadFormula, evaluate
from twin.sources.printed import understand


@pytest.mark.parametrize(
    ("printed", "said", "value", "low", "high"),
    [
        ("2727.00", None, 2727.0, 2726.995, 2727.005),
        ("1,376.26", None, 1376.26, 1376.255, 1376.265),
        ("16 384", None, 16384.0, 16383.5, 16384.5),
        ("7,000", "approx", 7000.0, 6500.0, 7500.0),
        ("approximately 18", None, 18.0, 17.5, 18.5),
        ("2:21", None, 141.0, 140.5, 141.5),
        ("(104*3)", None, 312.0, 312.0, 312.0),
        ("twelve", None, 12.0, 12.0, 12.0),
        ("25,000", "at_least", 25000.0, 25000.0, None),
        ("3", "at_most", 3.0, None, 3.0),
    ],
)
def test_printed_characters(printed, said, value, low, high):
    understood = understand(printed, said)
    assert understood.value == pytest.approx(value)
    assert understood.low == (low if low is None else pytest.approx(low))
    assert understood.high == (high if high is None else pytest.approx(high))


def test_what_is_no_number():
    assert understand("N/A").qualifier == "not_applicable"
    assert understand("604e/8").qualifier == "text"
    assert understand("60-80").qualifier == "range"


def test_a_printed_unit_is_scaled_with_its_rounding():
    minutes = understand("3", "at_most", scale=60)
    assert (minutes.value, minutes.high) == (180, 180)


@given(st.floats(0.01, 1e6), st.integers(0, 3))
def test_a_number_lies_among_the_values_that_print_like_it(value, decimals):
    understood = understand(f"{value:,.{decimals}f}")
    assert understood.low - 1e-9 <= value <= understood.high + 1e-9


def test_formulas_on_intervals():
    values = {
        "a": [(1.0, 2.0)],
        "b": [(4.0, 4.0)],
        "many": [(1.0, 1.0), (2.0, 3.0)],
        "more": [(1.0, 1.0), (5.0, 5.0)],
    }
    assert evaluate("b / a - 1", values) == (1, 3)
    assert evaluate("sum(many) * 2", values) == (6, 8)
    assert evaluate("max(many, b)", values) == (4, 4)
    assert evaluate("a < b", values) == (1, 1)
    assert evaluate("a > 1.5", values) == (0, 1)
    assert evaluate("min(more - many)", values) == (0, 0)


@pytest.mark.parametrize(
    "formula", ["a +", "unknown * 2", "a / 0", "__import__('os')", "many + 1", "min(many - three)"]
)
def test_what_is_no_formula(formula):
    with pytest.raises(BadFormula):
        evaluate(formula, {"a": [(1.0, 1.0)], "many": [(1.0, 1.0)] * 2, "three": [(1.0, 1.0)] * 3})
