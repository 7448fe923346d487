"""Each rule finds a planted fault and passes clean figures."""

from __future__ import annotations

import pytest

from expectations.gate import docs_index, findings_of
from expectations.laws import MEASUREMENT_LAWS
from features.bronze import figures_frame
from features.schemas import spark_schema
from features.silver import interpreted
from twin.core.tables import MEASUREMENTS
from twin.sources.shipped import shipped_figures

SOURCE = "wbimb-v5-solaris"


@pytest.fixture(scope="module")
def clean(spark):
    figures = [
        figure for figure in shipped_figures(SOURCE) if figure.origin.table_label in ("10.1", "10.9.1.2")
    ]
    return interpreted(figures_frame(spark, figures)).persist()


@pytest.fixture
def found(spark, settings, clean):
    """Findings after changing cells: {(figure ordinal, column): value}."""

    def validate(changes, add=()):
        rows = [row.asDict() for row in clean.collect()]
        for (ordinal, column), value in changes.items():
            rows[ordinal][column] = value
        frame = spark.createDataFrame([*rows, *add], spark_schema(MEASUREMENTS))
        findings = findings_of(settings, MEASUREMENTS, frame, MEASUREMENT_LAWS).collect()
        return {(row["rule"], row["figure_id"]) for row in findings}

    return validate


def test_clean_figures_have_no_findings_and_a_report(found, settings):
    assert found({}) == set()
    assert docs_index(settings).is_file()


def test_cost_that_contradicts_rate_and_busy_share_is_found(found):
    assert found({(2, "value"): 1.02, (2, "printed"): "1.02"}) == {("utilisation_law", f"{SOURCE}:926:2")}


def test_rounding_of_the_printed_digits_is_no_fault(found):
    # 69% x 4 / 2727 = 1.0121: both roundings of it are right
    assert found({(2, "value"): 1.0, (2, "printed"): "1.0"}) == set()
    assert found({(2, "value"): 1.012, (2, "printed"): "1.012"}) == set()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({(0, "value"): -1.0}, "throughput_msgs_per_s_in_range"),
        ({(1, "value"): 101.0}, "cpu_busy_pct_in_range"),
        ({(3, "cpus"): 0}, "cpus_in_range"),
        ({(0, "os"): "multics"}, "os_known"),
        ({(0, "unit"): None}, "unit_present"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_planted_fault_is_found_by_its_rule(found, change, rule):
    ((ordinal, _),) = change
    line, column = 926 + ordinal // 3, ordinal % 3
    assert (rule, f"{SOURCE}:{line}:{column}") in found(change)


def test_a_figure_that_is_there_twice_is_found(found, clean):
    again = clean.first().asDict()
    assert found({}, add=[again]) == {("figure_id_unique", again["figure_id"])}
