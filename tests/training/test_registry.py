"""The registry after work on it was killed, and with two who register at once."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace

import pandas as pd
import pytest

from training.model import HYBRID, TwinModel
from training.promotion import PASSED
from training.registry import CHAMPION, EXPERIMENT, MODEL, REASON, Registration, Registry, champion_model
from training.tracking_database import file_of
from training.training import _judge_if_nobody_did, example_of
from twin.app.tidying import Keep, tidy_home
from twin.core.prediction import THROUGHPUT


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    """MLflow leaves in this variable where it was pointed last."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def registration(key, configuration):
    rows = {"predictor": HYBRID, "target": THROUGHPUT, "source_id": "s", "measured": 10.0, "value": 11.0}
    exam = pd.DataFrame([rows | {"configuration_id": f"c{at}"} for at in range(9)])
    return Registration(key, {}, {}, exam, {}, "", None, example_of(configuration))


def test_two_who_register_at_once_get_a_version_each_and_tell_it(settings, small_model, small_data):
    configuration = next(iter(small_data.configurations.values()))
    registry = Registry(settings)

    def register(key):
        return Registry(settings).register(small_model, registration(key, configuration))

    with ThreadPoolExecutor(2) as both:
        versions = sorted(both.map(register, ("one", "two")))
    assert versions == ["1", "2"]
    import mlflow

    for version in versions:
        loaded = mlflow.pyfunc.load_model(f"models:/{MODEL}/{version}").unwrap_python_model().model
        assert loaded.version == version
    # killed before its verdict, a version has its key already, and the next training judges it
    known = registry.with_key("one")
    assert REASON not in known.tags
    lake = SimpleNamespace(written=lambda _: SimpleNamespace(expectations=PASSED))
    _judge_if_nobody_did(registry, known, lake)
    assert registry.with_key("one").tags[REASON] == "the first model"
    assert registry.version_of(CHAMPION).version == known.version
    assert isinstance(champion_model(settings), TwinModel)
    registry.remark(str(known.version), "judged by hand")
    _judge_if_nobody_did(registry, registry.with_key("one"), lake)
    assert registry.with_key("one").tags[REASON] == "judged by hand"
    # a third makes the second one nobody's
    register("three")
    other = str(registry.with_key("two").version)
    files = settings.home / "mlflow" / "artifacts"
    before = sum(1 for one in files.rglob("*") if one.is_file())
    keep = Keep(None, 1, 1, models=1)
    assert registry.superseded(3) == []
    assert registry.superseded(1) == [other]
    assert tidy_home(settings, keep, dry_run=True)["models_let_go"] == 1
    assert tidy_home(settings, keep)["models_let_go"] == 1
    assert {one.version for one in registry.listed()} == {str(known.version), "3"}
    left = sum(1 for one in files.rglob("*") if one.is_file())
    assert left * 3 <= before * 2 + 1
    assert champion_model(settings).version == str(known.version)


KILLED = """
import sys, time
import mlflow
from training.registry import Registry
from training.runs import run_tags
from twin.core.settings import Settings
Registry(Settings.from_environment())
mlflow.start_run(run_name="killed", tags=run_tags())
print("started", flush=True)
time.sleep(60)
"""


def test_a_run_whose_process_was_killed_does_not_go_on_for_ever(settings):
    import mlflow

    from training.runs import run_tags

    registry = Registry(settings)
    client = registry._client
    child = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "started\n"
    with mlflow.start_run(run_name="mine", tags=run_tags()) as mine:
        assert registry.dead_runs() == []
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert len(registry.dead_runs()) == 1
        registry.end_dead_runs()
        assert registry.dead_runs() == []
        assert client.get_run(mine.info.run_id).info.status == "RUNNING"
    states = {run.info.run_name: run.info.status for run in client.search_runs(_experiment(client))}
    assert states == {"killed": "KILLED", "mine": "FINISHED"}


def _experiment(client):
    return [client.get_experiment_by_name(EXPERIMENT).experiment_id]


def harmed(settings, *statements):
    Registry(settings)
    file = file_of(settings.tracking_uri)
    with closing(sqlite3.connect(file)) as database, database:
        for statement in statements:
            database.execute(statement)
    return file


HALF_MADE = ("DELETE FROM alembic_version", "DROP TABLE model_versions")


def test_a_database_that_was_half_made_begins_anew(settings):
    harmed(settings, *HALF_MADE)
    done = _in_a_new_process()
    assert done.returncode == 0, done.stderr


def test_one_that_somebody_used_is_never_thrown_away(settings):
    file = harmed(settings, "INSERT INTO runs (run_uuid, name) VALUES ('r', 'mine')", *HALF_MADE)
    before = file.read_bytes()
    done = _in_a_new_process()
    assert "BrokenDatabase" in done.stderr
    assert "twin restore" in done.stderr
    assert file.read_bytes() == before


def test_what_a_killed_start_left_beside_it_is_not_in_the_way(settings):
    file = file_of(settings.tracking_uri)
    file.parent.mkdir(parents=True)
    file.with_name(f"{file.name}.new").write_text("half")
    assert Registry(settings).newest() is None


def test_the_database_of_an_older_release_is_brought_up_to_date(settings):
    """With what is in it."""
    from alembic import command
    from alembic.script import ScriptDirectory
    from mlflow.store.db.utils import _get_alembic_config, create_sqlalchemy_engine
    from mlflow.store.tracking.dbmodels.initial_models import Base

    file = file_of(settings.tracking_uri)
    file.parent.mkdir(parents=True)
    engine, steps = (
        create_sqlalchemy_engine(settings.tracking_uri),
        _get_alembic_config(settings.tracking_uri),
    )
    Base.metadata.create_all(engine)
    older = [one.revision for one in ScriptDirectory.from_config(steps).walk_revisions()][1]
    with engine.begin() as connection:
        steps.attributes["connection"] = connection
        command.upgrade(steps, older)
    engine.dispose()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "INSERT INTO experiments (experiment_id, name, lifecycle_stage) VALUES (7, 'before', 'active')"
        )
    assert Registry(settings)._client.get_experiment("7").name == "before"


def _in_a_new_process():
    code = (
        "from training.registry import Registry; from twin.core.settings import Settings;"
        "assert Registry(Settings.from_environment()).newest() is None"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
