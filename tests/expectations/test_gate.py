"""Every rule of the suites finds a fault planted for it, and passes clean figures."""

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
TABLES = {"figures": FIGURES, "measurements": MEASUREMENTS}


@pytest.fixture(scope="module")
def clean(spark):
    """Figures of node tables that have nothing wrong with them."""
    figures = [one for one in shipped_figures(SOURCE) if one.origin.table_label.startswith(("10.1", "10.8"))]
    bronze = rows_frame(spark, FIGURES, [one for one in figures if "10.11" not in one.origin.table_label])
    return {"figures": bronze.persist(), "measurements": interpreted(bronze).persist()}


@pytest.fixture(scope="module")
def gate_settings(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TWIN_HOME", str(tmp_path_factory.mktemp("gate")))
        yield Settings.from_environment()


def faults(table):
    """For each rule that the columns' declarations give: the column, and a value that breaks the rule."""
    for field in table.fields:
        if not field.nullable:
            yield f"{field.name}_present", field.name, None
        if field.choices:
            yield f"{field.name}_known", field.name, "something else"
        if field.minimum is not None:
            kind = float if field.kind == "number" else int
            yield f"{field.name}_in_range", field.name, kind(field.minimum - 1)


@pytest.fixture(scope="module")
def planted(spark, gate_settings, clean):
    """Every fault at once, each in a figure of its own, and one figure twice: rules by figure."""

    def of(name):
        rows = [row.asDict() for row in sorted(clean[name].collect(), key=lambda row: row["line"])]
        expected = {}
        for row, (rule, column, value) in zip(rows, faults(TABLES[name]), strict=False):
            # a figure without its id cannot be named
            expected[rule] = None if (column, value) == ("figure_id", None) else row["figure_id"]
            row[column] = value
        expected["figure_id_unique"] = rows[-1]["figure_id"]
        frame = spark.createDataFrame([*rows, rows[-1]], spark_schema(TABLES[name]))
        found = findings_of(gate_settings, TABLES[name], frame, ()).collect()
        return expected, {(row["rule"], row["figure_id"]) for row in found}

    return {name: of(name) for name in TABLES}


@pytest.mark.parametrize("name", TABLES)
def test_clean_figures_have_no_findings_and_a_report(gate_settings, clean, name):
    laws = MEASUREMENT_LAWS if name == "measurements" else ()
    assert findings_of(gate_settings, TABLES[name], clean[name], laws).collect() == []
    assert docs_index(gate_settings).is_file()


@pytest.mark.parametrize(
    ("name", "rule"),
    [(name, rule) for name, table in TABLES.items() for rule, *_ in faults(table)]
    + [(name, "figure_id_unique") for name in TABLES],
)
def test_a_planted_fault_is_found_by_its_rule(planted, name, rule):
    expected, found = planted[name]
    assert (rule, expected[rule]) in found


@pytest.mark.parametrize("name", TABLES)
def test_figures_beside_the_faults_are_not_accused(planted, name):
    expected, found = planted[name]
    assert found == set(expected.items())


def test_a_broken_law_is_a_finding_too(spark, gate_settings, clean):
    rows = [row.asDict() for row in clean["measurements"].where("line = 926").collect()]
    cost = next(row for row in rows if row["metric"] == "cpu_ms_per_msg")
    cost |= {"printed_low": 1.02, "printed_high": 1.03}
    frame = spark.createDataFrame(rows, spark_schema(MEASUREMENTS))
    (finding,) = findings_of(gate_settings, MEASUREMENTS, frame, MEASUREMENT_LAWS).collect()
    assert (finding["rule"], finding["severity"], finding["line"]) == ("utilisation_law", "error", 926)


def test_a_frame_with_other_columns_cannot_be_validated(gate_settings, clean):
    with pytest.raises(SuiteCannotRun, match="other columns"):
        findings_of(gate_settings, FIGURES, clean["figures"].withColumnRenamed("box", "crate"), ())


def test_a_law_that_is_no_query_cannot_be_run(gate_settings, clean):
    law = Law("broken", "error", "Nothing", "SELECT nothing FROM {batch}")
    with pytest.raises(SuiteCannotRun, match="broken"):
        findings_of(gate_settings, FIGURES, clean["figures"], (law,))
