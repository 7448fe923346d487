"""Each rule finds a planted fault and passes clean figures."""

from __future__ import annotations

import pytest

from expectations.gate import SuiteCannotRun, docs_index, findings_of
from expectations.laws import MEASUREMENT_LAWS, Law
from features.bronze import rows_frame
from features.schemas import spark_schema
from features.silver import interpreted
from twin.core.settings import Settings
from twin.core.tables import FIGURES, MEASUREMENTS
from twin.sources.shipped import shipped_figures

SOURCE = "wbimb-v5-solaris"


@pytest.fixture(scope="module")
def clean(spark):
    figures = [
        figure for figure in shipped_figures(SOURCE) if figure.origin.table_label in ("10.1", "10.9.1.2")
    ]
    return interpreted(rows_frame(spark, FIGURES, figures)).persist()


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


PLANTED = {
    "utilisation_law": (926, 2, "printed_low", 1.02),
    "value_in_range": (928, 1, "value", 101.0),
    "cpus_in_range": (929, 0, "cpus", 0),
    "os_known": (929, 1, "os", "multics"),
    "source_kind_present": (929, 2, "source_kind", None),
}


@pytest.fixture(scope="module")
def planted(found, clean):
    """Every fault at once, each in a figure of its own, and one figure twice."""
    twice = clean.where("line = 931").first().asDict()
    changes = {(line, ordinal, column): value for line, ordinal, column, value in PLANTED.values()}
    return twice["figure_id"], found(changes, add=[twice])


def test_a_frame_with_other_columns_cannot_be_validated(gate_settings, clean):
    with pytest.raises(SuiteCannotRun, match="other columns"):
        findings_of(gate_settings, MEASUREMENTS, clean.withColumnRenamed("box", "crate"), ())


def test_a_law_that_is_no_query_cannot_be_run(gate_settings, clean):
    law = Law("broken", "error", "Nothing", "SELECT nothing FROM {batch}")
    with pytest.raises(SuiteCannotRun, match="broken"):
        findings_of(gate_settings, FIGURES, clean.limit(0), (law,))


@pytest.mark.parametrize("rule", PLANTED)
def test_a_planted_fault_is_found_by_its_rule(planted, rule):
    line, ordinal, *_ = PLANTED[rule]
    assert (rule, f"{SOURCE}:{line}:{ordinal}") in planted[1]


def test_a_figure_that_is_there_twice_is_found(planted):
    figure_id, findings = planted
    assert ("figure_id_unique", figure_id) in findings


def test_figures_beside_the_faults_are_not_accused(planted):
    suspects = {f"{SOURCE}:{line}:{ordinal}" for line, ordinal, *_ in PLANTED.values()} | {planted[0]}
    assert {figure_id for _, figure_id in planted[1]} == suspects
