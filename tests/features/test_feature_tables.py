import pandas as pd
import pytest

from features.bronze import rows_frame
from features.feature_tables import flow_features, hardware_features, training_set
from features.silver import interpreted, split
from twin.core.tables import FIGURES, FINDINGS, TRAINING_SET
from twin.sources.declarations import reports
from twin.sources.shipped import shipped_figures


@pytest.fixture(scope="module")
def measurements(spark):
    figures = [figure for source_id in reports() for figure in shipped_figures(source_id)]
    return interpreted(rows_frame(spark, FIGURES, figures)).persist()


@pytest.fixture(scope="module")
def training_rows(measurements):
    frame = training_set(measurements, hardware_features(measurements), flow_features(measurements))
    return frame.toPandas()


def test_integers_with_gaps_stay_integers(measurements):
    row = measurements.where("family = 'publication'").first()
    assert row["subscribers"] == 1
    assert row["compute_nodes"] is None


def test_one_training_row_per_configuration(training_rows, measurements):
    assert list(training_rows.columns) == list(TRAINING_SET.columns)
    assert training_rows["configuration_id"].is_unique
    assert set(training_rows["source_id"]) == set(reports())
    # the z/OS report measures costs, storage and data rates, no rate of messages
    assert training_rows.query("source_id == 'wmq-v7-zos'")["throughput_msgs_per_s"].isna().all()


def test_targets_are_the_printed_figures(training_rows):
    row = training_rows.query("node == 'trivial' and message_bytes == 1024 and not persistent").iloc[0]
    assert (row["throughput_msgs_per_s"], row["cpu_ms_per_msg"]) == (2727.0, 1.01)


def test_derived_features(training_rows):
    five = training_rows.query("esql == 'complex' and program_repeats == 5 and execution_groups == 4").iloc[0]
    assert (five["copies"], five["program_runs"], five["deliveries"]) == (4, 5, 1)
    published = training_rows.query("subscribers == 100").iloc[0]
    assert (published["deliveries"], published["program_runs"]) == (100, 0)


def test_split_puts_every_row_in_exactly_one_half(measurements, spark):
    accused = measurements.limit(1).first()["figure_id"]
    found = pd.DataFrame(
        [
            dict.fromkeys(FINDINGS.columns, "x") | {"severity": severity, "figure_id": figure_id, "line": 1}
            for severity, figure_id in [("error", accused), ("error", accused), ("warning", "another")]
        ]
    )
    trusted, quarantined = split(measurements, spark.createDataFrame(found))
    assert [row["figure_id"] for row in quarantined.collect()] == [accused]
    assert trusted.count() == measurements.count() - 1
