"""On a real Spark cluster: a master, two workers, and a driver in a process of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psutil
import pytest

import twin
from features.session import on_this_machine
from twin.app.services import family

from .cluster import NoJava, finished, running_cluster, waited

JOB = Path(__file__).with_name("cluster_job.py")


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


def test_a_job_on_both_workers_outlives_one_that_is_killed(spark_cluster, tmp_path):
    driver = spark_cluster.drive(tmp_path / "home", JOB, tmp_path, 4)
    killed, left = spark_cluster.workers

    def both_began():
        return {int(one.suffix[1:]) for one in tmp_path.glob("[0-3].*")} == {killed.id.pid, left.id.pid}

    waited(both_began, driver)
    assert set().union(*map(listening, (spark_cluster.master, driver, killed))) == {"127.0.0.1"}
    spark_cluster.kill(killed)
    (tmp_path / "go").touch()
    finished(driver)
    told = json.loads((tmp_path / "told.json").read_text())
    assert sorted(row["task"] for row in told["rows"]) == [0, 1, 2, 3]
    assert {row["worker"] for row in told["rows"]} == {left.id.pid}
    assert {row["python"] for row in told["rows"]} == {sys.executable}
    assert {row["package"] for row in told["rows"]} == {twin.__file__}
    # what the user's spark-defaults.conf says holds
    assert told["executor_memory"] == "640m"


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
