"""Each rule finds a planted fault and passes clean figures."""

from __future__ import annotations

import pytest

from expectations.gate import docs_index, findings_of
from expectations.laws import MEASUREMENT_LAWS
from features.bronze import figures_frame
from features.schemas import spark_schema
from features.silver import interpreted
from twin.core.settings import Settings
from twin.core.tables import MEASUREMENTS
from twin.sources.shipped import shipped_figures

SOURCE = "wbimb-v5-solaris"


@pytest.fixture(scope="module")
def clean(spark):
    figures = [
        figure for figure in shipped_figures(SOURCE) if figure.origin.table_label in ("10.1", "10.9.1.2")
    ]
    return interpreted(figures_frame(spark, figures)).persist()


@pytest.fixture(scope="module")
def gate_settings(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TWIN_HOME", str(tmp_path_factory.mktemp("gate")))
        yield Settings.from_environment()


@pytest.fixture(scope="module")
def found(spark, gate_settings, clean):
    """What is found after changing cells: {(line, ordinal, column): value}."""

    def validate(changes, add=()):
        rows = {row["figure_id"]: row.asDict() for row in clean.collect()}
        for (line, ordinal, column), value in changes.items():
            rows[f"{SOURCE}:{line}:{ordinal}"][column] = value
        frame = spark.createDataFrame([*rows.values(), *add], spark_schema(MEASUREMENTS))
        findings = findings_of(gate_settings, MEASUREMENTS, frame, MEASUREMENT_LAWS).collect()
        return {(row["rule"], row["figure_id"]) for row in findings}

    return validate


def test_clean_figures_have_no_findings_and_a_report(found, gate_settings):
    assert found({}) == set()
    assert docs_index(gate_settings).is_file()


def test_rounding_of_the_printed_digits_is_no_fault(found):
    # 69% x 4 / 2727 = 1.0121 and 51% x 4 / 1896 = 1.0759: coarser and finer roundings of them are right
    changes = {(926, 2): "1.0", (927, 2): "1.076"}
    assert (
        found(
            {(*cell, "value"): float(printed) for cell, printed in changes.items()}
            | {(*cell, "printed"): printed for cell, printed in changes.items()}
        )
        == set()
    )


PLANTED = {
    "utilisation_law": (926, 2, "value", 1.02),
    "throughput_msgs_per_s_in_range": (927, 0, "value", -1.0),
    "cpu_busy_pct_in_range": (928, 1, "value", 101.0),
    "cpus_in_range": (929, 0, "cpus", 0),
    "os_known": (929, 1, "os", "multics"),
    "unit_present": (929, 2, "unit", None),
}


@pytest.fixture(scope="module")
def planted(found, clean):
    """Every fault at once, each in a figure of its own, and one figure twice."""
    twice = clean.where("line = 931").first().asDict()
    changes = {(line, ordinal, column): value for line, ordinal, column, value in PLANTED.values()}
    return twice["figure_id"], found(changes, add=[twice])


@pytest.mark.parametrize("rule", PLANTED)
def test_a_planted_fault_is_found_by_its_rule(planted, rule):
    line, ordinal, *_ = PLANTED[rule]
    assert (rule, f"{SOURCE}:{line}:{ordinal}") in planted[1]


def test_a_figure_that_is_there_twice_is_found(planted):
    figure_id, findings = planted
    assert ("figure_id_unique", figure_id) in findings


def test_figures_beside_the_faults_are_not_accused(planted):
    # a wrong rate or busy share also breaks the law of its line, which accuses the cost there
    suspects = {f"{SOURCE}:{line}:{ordinal}" for line, ordinal, *_ in PLANTED.values()} | {planted[0]}
    costs_beside = {f"{SOURCE}:{line}:2" for line in (927, 928, 929)}
    assert {figure_id for _, figure_id in planted[1]} <= suspects | costs_beside
