import numpy as np
import pandas as pd
import pytest

from features.bronze import rows_frame
from features.feature_tables import flow_features, hardware_features, training_set
from features.silver import interpreted, split
from training.encoding import features_of
from twin.core.columns import Columns
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


def test_a_table_cut_by_size_can_be_cut_by_its_columns(training_rows):
    by_column = training_rows["exam_column"].notna()
    assert set(training_rows.loc[by_column, "source_id"]) == {"mqseries-pubsub-aix"}
    assert training_rows.loc[training_rows["source_id"] == "mqseries-pubsub-aix", "exam_column"].notna().all()
    assert "Loopback/Persist Broker" in set(training_rows["exam_column"])


def test_every_feature_has_an_entity_and_the_date_it_became_known(measurements, training_rows):
    assert training_rows["published_at"].notna().all()
    hardware = hardware_features(measurements).toPandas()
    assert hardware["platform_id"].is_unique
    assert hardware["published_at"].notna().all()


def test_features_are_the_same_for_a_table_and_for_a_request(training_rows, measured):
    configurations = {one.configuration.configuration_id: one.configuration for one in measured}
    asked = features_of(Columns.of([configurations[one] for one in training_rows["configuration_id"]]))
    for name in ("population", "commits_per_message", "bytes_moved", "log_write_ms", "clock_capacity_mhz"):
        stored = pd.to_numeric(training_rows[name]).to_numpy(float)
        assert np.array_equal(
            stored, pd.to_numeric(asked[name]).to_numpy(float, na_value=np.nan), equal_nan=True
        )
