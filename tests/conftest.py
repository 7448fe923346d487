"""One home and one Spark session for the whole test run."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from filelock import FileLock

from training.dataset import Data
from training.encoding import features_of
from training.model import TwinModel
from twin.app.databases import rewrite_paths
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

from .recording import record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_BEGAN = time.monotonic()
# The longest files first, so that both workers end at about the same time. What lands needs what the main job
# of the first file leaves: three others come between, or a worker would wait for it.
FIRST = (
    "test_end_to_end.py",
    "test_recovery.py",
    "test_platform.py",
    "test_interrupt.py",
    "test_landed_files.py",
    "test_ingest.py",
    "test_model_commands.py",
    "test_cluster_metadata.py",
    "test_gate.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: at for at, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """`make long` tells its last result where the other long targets do; a part of it does not."""
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.keyword
    if config.option.markexpr == "long" and whole:
        count = {
            name: len(terminalreporter.getreports(name)) for name in ("passed", "failed", "error", "skipped")
        }
        minutes = round((time.monotonic() - _BEGAN) / 60, 1)
        record("long", "make long", "Tests that take minutes by themselves", count | {"minutes": minutes})


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
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], None]], Path]:
    """A folder that takes minutes to fill, filled by the first worker that needs it and used by all."""
    folder = tmp_path_factory.getbasetemp()
    # a worker's own folder lies in the one of the run
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder

    def built(name: str, build: Callable[[Path], None]) -> Path:
        folder, done = shared / name, shared / f"{name}.done"
        with FileLock(shared / f"{name}.lock"):
            if not done.exists():
                # one that is there was left half filled: what failed for one worker fails for all
                folder.mkdir()
                build(folder)
                done.touch()
        return folder

    return built


def _twin(home: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as a user has it."""
    # Airflow settings and the registry of this test process must not reach the one under test
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AIRFLOW", "MLFLOW_TRACKING_URI"))
    }
    return subprocess.run(
        [sys.executable, "-m", "twin.app", *map(str, arguments)],
        env=inherited | {"TWIN_HOME": str(home)},
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip


@pytest.fixture(scope="module")
def twin(home: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command on the home that a module has."""
    return partial(_twin, home)


@pytest.fixture(scope="session")
def main_job(built_once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    """The main job on an empty home, once: the `home`, what was `printed`, and a `copy` of the home as it was
    then, for tests that go on from there in another way."""

    def build(folder: Path) -> None:
        home = folder / "home"
        done = _twin(home, "run")
        assert done.returncode == 0, done.stdout + done.stderr
        (folder / "printed").write_text(done.stdout)
        _copy_home(home, folder / "copy")

    return built_once("main-job", build)


def _copy_home(home: Path, copy: Path) -> None:
    shutil.copytree(home, copy)
    rewrite_paths(copy / "mlflow" / "mlflow.db", home, copy)


@pytest.fixture
def commit():
    """Rows as the new content of a table, without Spark."""
    import uuid

    import pyarrow as pa
    from pyarrow import parquet

    from features.arrow import arrow_schema
    from features.lake import DataFile, add_action

    def commit(lake, table, *rows, **noted):
        path = f"write-{uuid.uuid4().hex}/part.parquet"
        file = Path(lake.uri(table).removeprefix("file://")) / path
        file.parent.mkdir(parents=True)
        parquet.write_table(
            pa.Table.from_pylist(list(rows), arrow_schema(table)), file, write_page_checksum=True
        )
        written = DataFile(path, file.stat().st_size, len(rows), {})
        told = {"brokertwin.fingerprint": uuid.uuid4().hex, "brokertwin.rows": str(len(rows)), **noted}
        lake._add(table, lake.existing(table), [add_action(written)], told)
        return lake.version(table)

    return commit


@pytest.fixture(scope="session")
def spark(_home: None) -> Iterator[SparkSession]:
    from pyspark import cloudpickle

    from features.session import spark_session

    # a class of a test goes to Spark's processes whole: by its name they would look for it in the package
    # called tests that Ciw installs
    cloudpickle.register_pickle_by_value(sys.modules["tests"])
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
