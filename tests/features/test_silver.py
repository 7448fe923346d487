"""Harness files beside reports on their way from bronze to silver."""

from __future__ import annotations

import pytest

from expectations.laws import MEASUREMENT_LAWS
from features.bronze import rows_frame
from features.silver import interpreted
from twin.core.tables import FIGURES
from twin.sources.harness.reading import read_harness
from twin.sources.shipped import shipped_figures

RUN = """# Fri Jun 3 20:39:04 UTC 2022
# Persistence, Msg Size, Threads, Rate (RT/s), Client CPU, QM CPU
1,2048,1,124.97,21.60,4.81
1,2048,2,soon,12.43,6.74
1,2048,4,-253.77,13.76,8.27
1,2048
"""


@pytest.fixture(scope="module")
def measurements(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "results.csv"
    path.write_text(RUN)
    sidecar = "{os: linux, machine: box, cpus: 4, product: IBM MQ, version: 9.4, source: ours}"
    path.with_name("results.csv.yaml").write_text(sidecar)
    figures = [*read_harness(path).figures, *shipped_figures("mqsi-v11-solaris")]
    return interpreted(rows_frame(spark, FIGURES, figures)).persist()


def test_each_kind_of_source_is_understood_by_its_own_rules(measurements):
    counted = {row["source_id"]: row["count"] for row in measurements.groupBy("source_id").count().collect()}
    assert counted == {"harness-ours": 6, "mqsi-v11-solaris": 647}
    rate = measurements.where("figure_id = 'harness-ours:3:0'").first()
    assert (rate["metric"], rate["value"], rate["family"]) == (
        "throughput_msgs_per_s",
        124.97,
        "request_reply",
    )
    assert (rate["clients"], rate["persistent"], rate["version"]) == (1, True, "9.4")


@pytest.mark.parametrize(("law", "line"), [("number_expected", 4), ("value_in_range", 5)])
def test_what_cannot_be_a_rate_is_accused(spark, measurements, law, line):
    measurements.where("source_id = 'harness-ours'").createOrReplaceTempView("run")
    query = next(one.query for one in MEASUREMENT_LAWS if one.name == law)
    assert [row["line"] for row in spark.sql(query.format(batch="run")).collect()] == [line]
