"""On a real Spark cluster: a master, two workers, and a driver in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import psutil
import pytest

from features.lake import Lake
from features.session import on_this_machine
from twin.app import archiving
from twin.app.services import family
from twin.core.settings import Settings
from twin.core.tables import RUNS, SAMPLES

from .benchmarks.archive import generate
from .cluster import NoJava, finished, running_cluster, waited

JOB = Path(__file__).with_name("archive_job.py")


@pytest.fixture(scope="module")
def _cluster(tmp_path_factory):
    try:
        with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
            yield cluster
    except NoJava as error:
        pytest.skip(str(error))


@pytest.fixture
def spark_cluster(_cluster):
    """With both its workers, whatever the test before did to them."""
    _cluster.complete()
    return _cluster


def listening(running):
    return {
        connection.laddr.ip.removeprefix("::ffff:")
        for process in family(running.id)
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    generate(folder, 40_000, 8, seed=7)
    return folder


@pytest.fixture(scope="module")
def local(archive, tmp_path_factory, spark):
    """What one machine makes of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TWIN_HOME", str(tmp_path_factory.mktemp("local")))
        patch.setattr(archiving, "_verdict", lambda *_: "not asked")
        settings = Settings.from_environment()
        lake = Lake(settings)
        archiving.take_runs(settings, lake, spark, sorted(archive.glob("*.log")))
    return by_key(*(lake.pandas(table) for table in (SAMPLES, RUNS)))


def left_in(out):
    return by_key(*(pd.read_parquet(out / f"{table.name}.parquet") for table in (SAMPLES, RUNS)))


def by_key(samples, runs):
    """Which ingestion brought a run is its own affair."""
    runs = runs.drop(columns=["batch", "ingested_at"])
    return samples.set_index(list(SAMPLES.key)), runs.set_index(list(RUNS.key))


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=False, rtol=1e-9, atol=0)


@pytest.mark.long
def test_a_cluster_makes_the_same_rows_and_keys(spark_cluster, archive, local, tmp_path):
    finished(spark_cluster.drive(tmp_path / "home", JOB, archive, tmp_path), 180)
    found = left_in(tmp_path)
    assert [len(one) for one in found] == [40_000, len(local[1])]
    assert_same(found, local)


@pytest.mark.long
def test_a_worker_killed_in_the_middle_changes_nothing(spark_cluster, archive, local, tmp_path):
    driver = spark_cluster.drive(tmp_path / "home", JOB, archive, tmp_path, "held")
    killed, left = spark_cluster.workers

    def both_began():
        return {int(one.suffix[1:]) for one in tmp_path.glob("synthetic-*.*")} == {killed.id.pid, left.id.pid}

    waited(both_began, driver)
    assert set().union(*map(listening, (spark_cluster.master, driver, killed))) == {"127.0.0.1"}
    spark_cluster.kill(killed)
    (tmp_path / "go").touch()
    finished(driver, 180)
    assert_same(left_in(tmp_path), local)


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local[2]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://10.0.0.1:7077,10.0.0.2:7077", False),
        ("yarn", False),
        ("k8s://https://127.0.0.1:6443", False),
    ],
)
def test_a_driver_listens_on_loopback_only_where_all_is_on_one_machine(master, expected):
    assert on_this_machine(master) == expected
