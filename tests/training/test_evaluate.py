"""The exam on made-up rows, and on the small model for real."""

from __future__ import annotations

from multiprocessing import current_process

import numpy as np
import pandas as pd
import pytest

from training.evaluate import exam, scores
from training.hyperparameters import shipped
from training.model import PREDICTORS
from training.splits import held_out
from twin.core.prediction import THROUGHPUT


def made_up(**changes):
    """Two rows; everybody says 110 of 100 but for what is changed."""
    rows = [
        {
            "view": "", "fold": "0", "configuration_id": one, "source_id": "s", "exam_group": "g",
            "target": THROUGHPUT, "predictor": predictor, "measured": 100.0, "value": 110.0, "lo90": 90.0,
            "hi90": 120.0, "excuse": None, "distance": 1.0,
        }
        | changes.get(predictor, {})
        for one in ("a", "b")
        for predictor in PREDICTORS
    ]  # fmt: skip
    return pd.DataFrame(rows)


def overall(rows):
    return scores(rows)[THROUGHPUT]["overall"]


def test_errors_are_percentages_of_the_measured_value():
    found = overall(made_up())["hybrid"]
    assert (found["n"], found["n_excused"]) == (2, 0)
    assert found["median_ape"] == found["mape"] == found["p90_ape"] == pytest.approx(10)
    assert found["coverage90"] == 1
    assert found["width90"] == pytest.approx(30 / 110, abs=1e-4)


def test_an_excuse_is_scored_with_the_nearest_value_and_counted():
    excused = {"value": np.nan, "lo90": np.nan, "hi90": np.nan, "excuse": "never seen"}
    found = overall(made_up(hybrid=excused, nearest={"value": 150.0}))["hybrid"]
    assert (found["n"], found["n_excused"]) == (2, 2)
    assert found["median_ape"] == pytest.approx(50)
    assert found["median_ape_answered"] is None
    assert found["coverage90"] is None


def test_an_interval_that_misses_costs_ten_times_by_how_far():
    found = overall(made_up(hybrid={"lo90": 105.0, "hi90": 120.0}))["hybrid"]
    assert found["coverage90"] == 0
    assert found["interval_score90"] == pytest.approx((15 + 20 * 5) / 100)


def test_small_reports_do_not_count_in_the_mean_over_reports():
    assert scores(made_up())[THROUGHPUT]["macro"]["hybrid"]["median_ape"] is None


def test_harness_files_count_under_their_own_name_alone():
    published = made_up().assign(source_id="wmq-v7-zos")
    own = made_up(hybrid={"value": 300.0}).assign(source_id="harness-mine", fold="1")
    found = scores(pd.concat([published, own]))[THROUGHPUT]
    assert found["overall"] == scores(published)[THROUGHPUT]["overall"]
    assert found["macro"] == scores(published)[THROUGHPUT]["macro"]
    assert found["reports"]["harness-mine"]["hybrid"]["median_ape"] == pytest.approx(200)


def test_without_a_published_report_harness_files_are_all_there_is():
    found = overall(made_up().assign(source_id="harness-mine"))["hybrid"]
    assert (found["n"], found["median_ape"]) == (2, pytest.approx(10))


def test_a_second_view_is_told_apart():
    rows = pd.concat([made_up(), made_up(hybrid={"value": 200.0}).assign(view="column")])
    found = scores(rows)[THROUGHPUT]
    assert found["overall"]["hybrid"]["n"] == 2
    assert found["views"]["s by column"]["hybrid"]["median_ape"] == pytest.approx(100)


def test_all_predictors_are_scored_on_the_same_rows_that_none_was_given(small_data):
    asked = set(small_data.rows.index[small_data.rows["exam_group"] == "Figure 9"])
    rows = exam(small_data, held_out(small_data, asked), shipped(), jobs=1)
    by_predictor = rows.groupby("predictor")["configuration_id"].agg(set)
    assert set(by_predictor.index) == set(PREDICTORS)
    assert all(ids == asked for ids in by_predictor)
    # a model that had seen the rows would have the nearest at no distance
    assert (rows["distance"] > 0).all()


def test_folds_in_parallel_give_what_they_give_one_by_one(small_data, monkeypatch):
    folds = [
        fold
        for group in ("Figure 9", "Figure 10")
        for fold in held_out(small_data, set(small_data.rows.index[small_data.rows["exam_group"] == group]))
    ]
    together = exam(small_data, folds, shipped(), jobs=2)
    # a worker of Celery's may have no children
    monkeypatch.setattr(current_process(), "daemon", True)
    alone = exam(small_data, folds, shipped(), jobs=2)
    pd.testing.assert_frame_equal(alone, together, rtol=1e-6)
