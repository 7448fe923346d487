"""One home and one Spark session for the whole test run."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from training.dataset import Data
from training.encoding import features_of
from training.model import TwinModel
from twin.calibration.fitting import Fit, fit
from twin.calibration.observations import Observation, Observations, observations_of
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.fields import flatten
from twin.core.settings import Settings
from twin.core.tables import TARGETS
from twin.sources.declarations import reports
from twin.sources.interpreting import interpret
from twin.sources.shipped import shipped_figures
from twin.systems.model import System

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest file first, or it would run alone at the end while the other worker has nothing to do."""
    items.sort(key=lambda item: item.path.name != "test_end_to_end.py")


@pytest.fixture(scope="session", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test may touch the project's own data, nor an Airflow home in the user's."""
    home = tmp_path_factory.mktemp("home")
    os.environ["TWIN_HOME"] = str(home)
    os.environ["AIRFLOW_HOME"] = str(home / "airflow")
    # py4j tells of its closing connections when the streams that pytest lent are closed already
    logging.getLogger("py4j").setLevel(logging.WARNING)


@pytest.fixture(scope="module", autouse=True)
def _forget_registry() -> None:
    """MLflow leaves in this variable where it was pointed last: at the registry of other tests."""
    os.environ.pop("MLFLOW_TRACKING_URI", None)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A home of the test's own."""
    monkeypatch.setenv("TWIN_HOME", str(tmp_path / "home"))
    return Settings.from_environment()


@pytest.fixture(scope="module")
def airflow_patch() -> Iterator[pytest.MonkeyPatch]:
    """For a module that runs an Airflow of its own: what is set for this process must not reach it."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("AIRFLOW"):
                patch.delenv(name)
        yield patch


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


@cache
def _measured() -> tuple[Observation, ...]:
    rows = [
        flatten(one) | {"exam_group": one.exam_group}
        for source_id, report in reports().items()
        for one in interpret(shipped_figures(source_id), report)
    ]
    return tuple(observations_of(rows))


@pytest.fixture(scope="session")
def measured() -> tuple[Observation, ...]:
    """Every measured figure of the five reports, those that a law quarantines included."""
    return _measured()


@pytest.fixture(scope="session")
def fitted() -> Callable[[System], Fit]:
    """A system fitted on the shipped figures, once for all tests."""
    known: dict[str, Fit] = {}

    def fit_of(system: System) -> Fit:
        if system.name not in known:
            rows = [row for row in _measured() if row.exam_group is not None]
            known[system.name] = fit(Observations.of(system, rows))
        return known[system.name]

    return fit_of


@pytest.fixture(scope="session")
def small_data(measured):
    """The hub and the cluster of the shipped figures, as the training set has them."""
    sources = ("mqsi-v11-solaris", "wmq-v53-windows-clusters")
    figures = tuple(one for one in measured if one.source_id in sources and one.exam_group)
    told = [one for one in figures if one.metric in TARGETS]
    keys = pd.DataFrame(
        {
            "configuration_id": [one.configuration.configuration_id for one in told],
            "source_id": [one.source_id for one in told],
            "exam_group": [str(one.exam_group) for one in told],
            "metric": [one.metric for one in told],
            "value": [one.value for one in told],
        }
    )
    rows = keys.groupby("configuration_id").agg(
        source_id=("source_id", "first"), exam_group=("exam_group", "min")
    )
    values = keys.pivot_table("value", "configuration_id", "metric")
    configurations = {one.configuration.configuration_id: one.configuration for one in figures}
    features = features_of(Columns.of([configurations[one] for one in rows.index])).set_index(rows.index)
    rows = rows.assign(
        exam_column=None,
        population=features["population"],
        deliveries=features["deliveries"],
        **{target: values.get(target, pd.Series(float("nan"), rows.index)) for target in TARGETS},
    )
    return Data(rows, figures, 0, "small")


@pytest.fixture(scope="session")
def small_model(small_data):
    return TwinModel.fit(small_data)
