import numpy as np
import pandas as pd
import pytest

from training.promotion import PASSED, verdict

IDS = [f"c{at}" for at in range(10)]


def examined(error, ids=IDS, measured=100.0):
    """Everything predicted too high by so much."""
    rows = {"source_id": "report", "measured": measured, "value": measured * (1 + error)}
    return pd.DataFrame(rows, index=pd.Index(ids, name="configuration_id"))


def test_the_first_model_is_promoted():
    assert verdict(PASSED, None, examined(0.5)) == (True, "the first model")


def test_failed_expectations_are_refused_with_the_reason():
    said = "utilisation_law: 3 figures"
    assert verdict(said, examined(0.2), examined(0.1)) == (False, f"expectations: {said}")


def test_failed_expectations_refuse_even_the_first_model():
    promoted, _ = verdict("failed", None, examined(0.1))
    assert not promoted


@pytest.mark.parametrize("nothing", [None, examined(0.1, ids=[])])
def test_a_model_that_was_not_examined_is_refused(nothing):
    assert verdict(PASSED, None, nothing) == (False, "nothing was examined")


def test_a_better_model_is_promoted():
    promoted, said = verdict(PASSED, examined(0.2), examined(0.1))
    assert promoted
    assert said == "median error 10.00% against 20.00% on 10 rows of both table versions"


@pytest.mark.parametrize(("error", "promoted"), [(0.104, True), (0.106, False)])
def test_a_model_may_be_one_twentieth_worse(error, promoted):
    assert verdict(PASSED, examined(0.1), examined(error))[0] is promoted


def test_too_low_is_as_wrong_as_too_high():
    assert not verdict(PASSED, examined(0.1), examined(-0.2))[0]


def test_a_row_whose_measured_value_has_changed_does_not_count():
    challenger = examined(0.1)
    # most of them, so that they would decide the median
    challenger.loc[IDS[:6], "measured"] = 101.0
    promoted, said = verdict(PASSED, examined(0.1), challenger)
    assert promoted
    assert said.endswith("on 4 rows of both table versions")


def test_rows_that_only_one_table_has_do_not_count():
    new = examined(0.9, ids=[f"new{at}" for at in range(20)])
    promoted, said = verdict(PASSED, examined(0.1), pd.concat([examined(0.1), new]))
    assert promoted
    assert "on 10 rows" in said


def test_a_model_may_not_know_a_tenth_of_the_configurations():
    assert verdict(PASSED, examined(0.1), examined(0.1, ids=IDS[1:]))[0]


def test_a_model_that_does_not_know_more_than_a_tenth_is_refused():
    promoted, said = verdict(PASSED, examined(0.1), examined(0.01, ids=IDS[2:]))
    assert not promoted
    assert said == "it does not answer 2 of the 10 that the champion answers"


def test_models_without_a_common_row_are_refused():
    assert not verdict(PASSED, examined(0.1), examined(0.01, ids=["other"]))[0]


def test_models_whose_rows_were_all_measured_anew_cannot_be_compared():
    promoted, said = verdict(PASSED, examined(0.1), examined(0.1, measured=101.0))
    assert not promoted
    assert said.startswith("no row is in both table versions")


@pytest.mark.parametrize("excused", ["champion", "challenger"])
def test_excused_rows_are_left_out(excused):
    frames = {"champion": examined(0.1), "challenger": examined(0.1)}
    frames[excused].loc[IDS[:1], "value"] = np.nan
    promoted, said = verdict(PASSED, **frames)
    assert promoted
    assert said == "median error 10.00% against 10.00% on 9 rows of both table versions"


def test_a_model_that_excuses_what_is_hard_does_not_win_on_the_rest():
    challenger = examined(0.05)
    challenger.loc[IDS[:2], "value"] = np.nan
    promoted, said = verdict(PASSED, examined(0.1), challenger)
    assert not promoted
    assert said == "it does not answer 2 of the 10 that the champion answers"


def of_two_reports(errors, measured=100.0):
    """Ten rows each, the first's predicted too high by one error, the second's by the other."""
    parts = [
        examined(error, ids=[f"{source}{at}" for at in range(10)], measured=measured).assign(source_id=source)
        for source, error in zip(("one", "two"), errors, strict=True)
    ]
    return pd.concat(parts)


def test_a_source_that_says_something_else_than_before_is_for_a_person_to_judge():
    before, now = of_two_reports((0.1, 0.1)), of_two_reports((0.05, 0.05))
    now.loc[["two0", "two1"], ["measured", "value"]] *= 10
    promoted, said = verdict(PASSED, before, now)
    assert not promoted
    assert said.startswith("two: 2 of 10 measured values have changed")


def test_a_single_corrected_figure_does_not_stop_a_model():
    before, now = of_two_reports((0.1, 0.1)), of_two_reports((0.05, 0.05))
    now.loc["two0", ["measured", "value"]] *= 10
    assert verdict(PASSED, before, now)[0]


def test_a_model_that_has_become_worse_on_one_source_is_refused():
    promoted, said = verdict(PASSED, of_two_reports((0.1, 0.1)), of_two_reports((0.01, 0.2)))
    assert not promoted
    assert said.startswith("two: median error 20.00% against 10.00%")


def test_a_source_of_few_rows_has_no_say():
    before = of_two_reports((0.1, 0.1)).drop([f"two{at}" for at in range(6)])
    now = of_two_reports((0.1, 0.9)).drop([f"two{at}" for at in range(6)])
    assert verdict(PASSED, before, now)[0]
