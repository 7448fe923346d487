"""One home and one Spark session for the whole test run."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from twin.core.configuration import Configuration
from twin.core.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test may touch the project's own data, nor an Airflow home in the user's."""
    home = tmp_path_factory.mktemp("home")
    os.environ["TWIN_HOME"] = str(home)
    os.environ["AIRFLOW_HOME"] = str(home / "airflow")
    # py4j tells of its closing connections when the streams that pytest lent are closed already
    logging.getLogger("py4j").setLevel(logging.WARNING)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A home of the test's own."""
    monkeypatch.setenv("TWIN_HOME", str(tmp_path / "home"))
    return Settings.from_environment()


@pytest.fixture(scope="session")
def spark(_home: None) -> Iterator[SparkSession]:
    from features.session import spark_session

    session = spark_session(Settings.from_environment(), "tests")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def reports_dir() -> Path:
    """The report documents, where this machine has them."""
    folder = os.environ.get("TWIN_REPORTS_DIR")
    if not folder:
        pytest.skip("TWIN_REPORTS_DIR does not say where the report documents are")
    return Path(folder)


@pytest.fixture
def configuration() -> Configuration:
    from twin.app.describing import flat_example

    return Configuration.from_flat(flat_example("message_flow"))
