"""Each law finds a planted fault and passes a clean case."""

from __future__ import annotations

from datetime import date

import pytest

from expectations.laws import MEASUREMENT_LAWS, RESIDUAL_LAWS
from features.schemas import spark_schema
from twin.app.describing import flat_example
from twin.core.configuration import Configuration
from twin.core.tables import MEASUREMENTS, RESIDUALS
from twin.sources.printed import understand

LAWS = {law.name: law for law in (*MEASUREMENT_LAWS, *RESIDUAL_LAWS)}


def figure(line, printed, metric="throughput_msgs_per_s", ordinal=0, **changes):
    """A table figure on a line of its own, of the example message flow unless changed."""
    configuration = {
        name: changes.pop(name) for name in list(changes) if name in flat_example("message_flow")
    }
    flow = Configuration.from_flat(flat_example("message_flow") | configuration)
    understood = understand(printed)
    row = dict.fromkeys(MEASUREMENTS.columns) | flow.flat() | {
        "figure_id": f"s:{line}:{ordinal}", "source_id": "s", "line": line, "table_label": "T",
        "column_header": metric, "column_index": ordinal, "printed": printed, "source_kind": "table",
        "row_keys": "{}", "metric": metric, "value": understood.value, "qualifier": understood.qualifier,
        "printed_low": understood.low, "printed_high": understood.high, "fact_kind": "measurement",
        "unit": "", "published_at": date(2000, 1, 1), "configuration_id": flow.configuration_id,
    }  # fmt: skip
    return row | changes


@pytest.fixture
def accused(spark):
    def run(law, *rows, table=MEASUREMENTS):
        spark.createDataFrame(list(rows), spark_schema(table)).createOrReplaceTempView("planted")
        found = spark.sql(LAWS[law].query.format(batch="planted")).collect()
        assert all(row["expected"] and row["message"] for row in found)
        return sorted(row["line"] for row in found)

    return run


def utilised(line, rate, busy, cost):
    return [
        figure(line, rate),
        figure(line, busy, "cpu_busy_pct", 1),
        figure(line, cost, "cpu_ms_per_msg", 2),
    ]


def test_utilisation_law(accused):
    # 69% of 4 processors at 2727 msgs/s is 1.0121 ms: coarser and finer roundings of it are right
    right = [*utilised(1, "2727.00", "69.00", "1.01"), *utilised(2, "2727.00", "69.00", "1.012")]
    assert accused("utilisation_law", *right) == []
    assert accused("utilisation_law", *right, *utilised(3, "2727.00", "69.00", "1.02")) == [3]


def derived(line, printed, rule, low, high):
    return figure(line, printed, derivation_rule=rule, derivation="a", derived_low=low, derived_high=high)


@pytest.mark.parametrize("rule", ["restatement", "sum", "product", "difference", "count", "claim", "ratio"])
def test_a_derived_figure_that_contradicts_its_parts(accused, rule):
    right = derived(1, "175", rule, 174.0, 176.0)
    wrong = derived(2, "188", rule, 174.0, 176.0)
    assert accused(rule, right, wrong) == [2]


def test_a_bound_that_is_kept_or_broken(accused):
    kept = derived(1, "180", "restatement", 149.0, 149.0) | {"printed_low": None}
    broken = derived(2, "180", "restatement", 200.0, 200.0) | {"printed_low": None}
    assert accused("restatement", kept, broken) == [2]


def test_a_ratio_that_was_cut_off_is_told_apart_from_a_wrong_one(accused):
    rows = [
        derived(1, "408", "ratio", 407.59, 407.61),
        derived(2, "407", "ratio", 407.59, 407.61),
        derived(3, "400", "ratio", 407.59, 407.61),
    ]
    assert accused("rounding", *rows) == [2]
    assert accused("ratio", *rows) == [3]


def test_a_repetition_for_another_configuration(accused):
    stands = figure(1, "277.00", message_bytes=4096)
    same = figure(2, "277", message_bytes=4096, restates="s:1:0", source_kind="prose")
    other = figure(3, "277", message_bytes=1024, restates="s:1:0", source_kind="prose")
    assert accused("restated_configuration", stands, same, other) == [3]


def test_a_label_that_contradicts_its_caption(accused):
    def labelled(line, table, box):
        keys = f'{{"box": "{box}", "box_line": "{line - 2}", "caption": "M2", "caption_line": "1"}}'
        return figure(line, "47", table_label=table, row_keys=keys)

    rows = [labelled(10, "right", "M2"), labelled(20, "wrong", "P2"), labelled(21, "wrong", "P2")]
    assert accused("label_against_caption", *rows) == [18]


def test_a_cell_that_is_no_number(accused):
    rows = [figure(1, "12"), figure(2, "lots"), figure(3, "N/A"), figure(4, "60-80")]
    total = figure(5, "lost", fact_kind="derived")
    assert accused("number_expected", *rows, total) == [2, 5]


def test_a_value_outside_its_metrics_range(accused):
    rows = [
        figure(1, "100", "cpu_busy_pct"),
        figure(2, "101", "cpu_busy_pct"),
        figure(3, "0"),
        figure(4, "0.5"),
    ]
    assert accused("value_in_range", *rows) == [2, 3]


def test_shifted_cells(accused):
    column = ["20.12", "11.82", "12.40", "13.00"]
    clean = [figure(line, printed) for line, printed in enumerate(column, start=1)]
    assert accused("shifted_cells", *clean) == []
    shifted = [
        figure(line, printed)
        for line, printed in enumerate(["20.12", "11.82", *column[:2], "12.40"], start=1)
    ]
    assert accused("shifted_cells", *shifted) == [3, 4, 5]


def test_equal_cells_one_below_the_other_are_no_shift(accused):
    plateau = [figure(line, printed) for line, printed in enumerate(["51.00"] * 4 + ["50.00"] * 3, start=1)]
    assert accused("shifted_cells", *plateau) == []


def test_a_table_that_is_printed_again_under_another_name(accused):
    def table(label, first, *cells):
        return [
            figure(first + row, printed, table_label=label, row_keys=f'{{"row": "{row}"}}')
            for row, printed in enumerate(cells)
        ]

    original = table("A", 1, "10.1", "20.2", "30.3")
    assert accused("repeated_table", *original, *table("B", 11, "10.1", "20.2", "30.3")) == [11, 12, 13]
    assert accused("repeated_table", *original, *table("B", 11, "10.1", "21.2", "31.3")) == []
    # rows that say nothing may well be equal
    assert accused("repeated_table", *table("A", 1, "0", "0", "0"), *table("B", 11, "0", "0", "0")) == []


def test_a_larger_message_that_is_faster(accused):
    rates = [
        figure(line, rate, message_bytes=1024 * line)
        for line, rate in enumerate(["100", "105", "150"], start=1)
    ]
    assert accused("larger_message_faster", *rates) == [3]
    times = [
        figure(line, time, "elapsed_ms", message_bytes=1024 * line)
        for line, time in enumerate(["100", "95", "60"], start=1)
    ]
    assert accused("larger_message_faster", *times) == [3]


def test_a_larger_message_that_takes_less_storage(accused):
    sizes = [
        figure(line, size, "channel_memory_kb", message_bytes=1024 * line)
        for line, size in enumerate(["234", "228", "351"], start=1)
    ]
    assert accused("larger_message_smaller", *sizes) == [2]


def test_more_subscribers_that_are_served_faster(accused):
    times = [
        figure(line, time, "elapsed_ms") | {"subscribers": line}
        for line, time in enumerate(["10", "20", "12"], start=1)
    ]
    assert accused("more_subscribers_faster", *times) == [3]


def test_model_residual(accused):
    def residual(line, deviations):
        return {
            "figure_id": f"s:{line}:0", "source_id": "s", "line": line, "printed": "50.00",
            "system": "broker", "metric": "throughput_msgs_per_s", "value": 50.0, "fitted_value": 60.0,
            "deviations": deviations,
        }  # fmt: skip

    usual = [residual(1, 0.3), residual(2, -4.9)]
    assert accused("model_residual", *usual, table=RESIDUALS) == []
    assert accused("model_residual", *usual, residual(3, 5.1), residual(4, -9.0), table=RESIDUALS) == [3, 4]


def test_every_law_is_tested():
    assert set(LAWS) == {
        "utilisation_law", "restatement", "sum", "product", "difference", "count", "claim", "ratio",
        "rounding", "restated_configuration", "label_against_caption", "number_expected", "value_in_range",
        "shifted_cells", "repeated_table", "larger_message_faster", "larger_message_smaller",
        "more_subscribers_faster", "model_residual",
    }  # fmt: skip
