"""Figures that somebody made up do not get a model promoted."""

from __future__ import annotations

import pytest

from features.feature_tables import flow_features, hardware_features, training_set
from features.lake import Lake
from features.silver import interpreted
from training.promotion import PASSED
from training.registry import CHAMPION, Registry
from training.training import train
from twin.core.settings import Settings
from twin.core.tables import FIGURES, FLOW_FEATURES, HARDWARE_FEATURES, MEASUREMENTS, TRAINING_SET
from twin.sources.shipped import shipped_figures

pytestmark = pytest.mark.long

SOURCES = ("mqsi-v11-solaris", "wmq-v53-windows-clusters")


@pytest.fixture(scope="module")
def small_lake(tmp_path_factory, spark):
    """The hub and the cluster in a lake of their own; `fill` makes every table of the measurements it is
    given."""
    from features.bronze import rows_frame

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TWIN_HOME", str(tmp_path_factory.mktemp("poisoned")))
        settings = Settings.from_environment()
    lake = Lake(settings)
    figures = [figure for source in SOURCES for figure in shipped_figures(source)]
    measurements = interpreted(rows_frame(spark, FIGURES, figures)).persist()

    def fill(change=lambda frame: frame):
        lake.replace(MEASUREMENTS, change(measurements))
        silver = lake.spark(MEASUREMENTS, spark)
        lake.replace(HARDWARE_FEATURES, hardware_features(silver))
        lake.replace(FLOW_FEATURES, flow_features(silver))
        features = (lake.spark(table, spark) for table in (HARDWARE_FEATURES, FLOW_FEATURES))
        lake.replace(TRAINING_SET, training_set(silver, *features), PASSED)

    return settings, fill


def test_poisoned_figures_do_not_replace_the_champion(small_lake):
    from pyspark.sql import functions as f

    settings, fill = small_lake
    fill()
    first = train(settings)
    assert first.champion

    # three times the rate for every third row of the hub: each looks like a rate, and no printed sum is
    # touched
    rate = (f.col("metric") == "throughput_msgs_per_s") & (f.col("source_id") == SOURCES[0])
    poisoned = f.when(rate & (f.col("line") % 3 == 0), f.col("value") * 3).otherwise(f.col("value"))
    fill(lambda frame: frame.withColumn("value", poisoned))
    second = train(settings)
    assert second.changed
    assert not second.champion
    assert second.reason.startswith(SOURCES[0])
    assert str(Registry(settings).version_of(CHAMPION).version) == first.version
