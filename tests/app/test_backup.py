"""A home saved, destroyed and restored elsewhere answers the same to the last bit."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tarfile
from contextlib import closing
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pandas as pd
import pytest
import zstandard
from typer.testing import CliRunner

from features.lake import Lake
from training.registry import Registration, Registry, champion_model
from training.training import example_of
from twin.app.backup import MANIFEST, CannotBackUp, back_up
from twin.app.cli import app
from twin.app.databases import DatabaseFailed
from twin.app.restore import BadBackup, HomeIsTaken, restore
from twin.core.prediction import Prediction
from twin.core.settings import Settings
from twin.core.tables import FINDINGS

from ..a_finding import ROW


@pytest.fixture
def home(settings, commit, monkeypatch):
    """Two versions of a table, files that landed, a database, secrets."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    settings = Settings.from_environment()
    lake = Lake(settings)
    for line in (1, 2):
        commit(lake, FINDINGS, ROW | {"line": line})
    for name, text in {
        "inbox/waiting.csv": "a", "answers/a.jsonl": "{}", "sync/broker.json": "{}", "tokens.json": "secret",
        "airflow/passwords.json": "secret", "logs/api.log": "x", "staging/half.json": "x", "lake.lock": "",
    }.items():  # fmt: skip
        place = settings.home / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    with closing(sqlite3.connect(settings.home / "airflow" / "airflow.db")) as database, database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE dag_run (id INTEGER)")
        database.execute("INSERT INTO dag_run VALUES (7)")
    return settings


def at(settings, home):
    database = f"sqlite:///{home / 'mlflow' / 'mlflow.db'}"
    return replace(settings, home=home, lake_uri=(home / "lake").as_uri(), tracking_uri=database)


def test_a_destroyed_home_restored_elsewhere_is_the_same(home, small_model, small_data, tmp_path):
    configurations = list(small_data.configurations.values())[:40]
    exam = pd.DataFrame({"configuration_id": ["c"]})
    what = Registration("key", {}, {}, exam, {}, "", None, example_of(configurations[0]))
    registry = Registry(home)
    registry.promote(registry.register(small_model, what), "the first")
    before = champion_model(home).predict(configurations)
    tables = Lake(home).arrow(FINDINGS)

    saved = back_up(home, tmp_path / "saved.tar.zst")
    shutil.rmtree(home.home)
    there = at(home, restore(home, saved.place, tmp_path / "else where" / "home").home)

    assert champion_model(there).predict(configurations) == before
    assert any(isinstance(one, Prediction) for one in before)
    assert Lake(there).arrow(FINDINGS).equals(tables)
    assert Lake(there).pandas(FINDINGS, version=0)["line"].tolist() == [1]


def test_what_is_saved_and_what_is_not(home, tmp_path):
    saved = back_up(home, tmp_path / "folder")
    names = set(json.loads((saved.place / MANIFEST).read_text())["files"])
    assert {"inbox/waiting.csv", "answers/a.jsonl", "sync/broker.json", "airflow/airflow.db"} <= names
    assert not [name for name in names if name.startswith(("logs", "staging")) or name.endswith(".lock")]
    assert not names & {"tokens.json", "airflow/passwords.json"}
    assert (saved.place.stat().st_mode & 0o777) == 0o700
    with closing(sqlite3.connect(saved.place / "airflow" / "airflow.db")) as database:
        assert database.execute("SELECT id FROM dag_run").fetchall() == [(7,)]
    back_up(home, tmp_path / "all", with_secrets=True)
    assert (tmp_path / "all" / "tokens.json").read_text() == "secret"


def test_a_home_that_has_content_is_left_alone_unless_told(home, tmp_path):
    saved = back_up(home, tmp_path / "saved.tar.zst").place
    (home.home / "answers" / "later.jsonl").write_text("{}")
    with pytest.raises(HomeIsTaken, match="--replace"):
        restore(home, saved)
    told = restore(home, saved, replaces=True)
    assert (told.before / "answers" / "later.jsonl").exists()
    assert not (home.home / "answers" / "later.jsonl").exists()
    assert (home.home.stat().st_mode & 0o777) == 0o700


def test_a_lake_elsewhere_is_saved_and_restored_there(home, tmp_path, commit):
    elsewhere = replace(home, lake_uri=(tmp_path / "store").as_uri())
    commit(Lake(elsewhere), FINDINGS, ROW | {"line": 5})
    saved = back_up(elsewhere, tmp_path / "saved.tar.zst").place
    with pytest.raises(HomeIsTaken, match="is there already"):
        restore(elsewhere, saved, replaces=True)
    shutil.rmtree(tmp_path / "store")
    restore(elsewhere, saved, replaces=True)
    assert Lake(elsewhere).pandas(FINDINGS)["line"].tolist() == [5]


def test_a_damaged_table_is_not_saved_as_a_sound_one(home, tmp_path):
    from features.damage import Damaged

    (Path(Lake(home).uri(FINDINGS).removeprefix("file://")) / "_delta_log" / f"{1:020}.json").write_text("")
    with pytest.raises(Damaged):
        back_up(home, tmp_path / "saved.tar.zst")
    assert not [*tmp_path.glob("*saved*")]


def test_nothing_that_is_there_is_overwritten_by_a_backup(home, tmp_path):
    (tmp_path / "there").write_text("mine")
    for place in (tmp_path / "there", home.home / "inside"):
        with pytest.raises(CannotBackUp):
            back_up(home, place)


@pytest.mark.parametrize("place", [0.1, 0.5, 0.99])
def test_a_damaged_archive_is_refused(home, tmp_path, place):
    saved = back_up(home, tmp_path / "saved.tar.zst").place
    content = bytearray(saved.read_bytes())
    content[int(len(content) * place)] ^= 1
    saved.write_bytes(bytes(content))
    with pytest.raises(BadBackup):
        restore(home, saved, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_cut_archive_is_refused(home, tmp_path):
    saved = back_up(home, tmp_path / "saved.tar.zst").place
    saved.write_bytes(saved.read_bytes()[:-200])
    with pytest.raises(BadBackup):
        restore(home, saved, tmp_path / "new")


@pytest.mark.parametrize("fault", ["missing", "changed", "added", "link", "no manifest"])
def test_a_damaged_folder_is_refused(home, tmp_path, fault):
    saved = back_up(home, tmp_path / "saved").place
    file = saved / "inbox" / "waiting.csv"
    match fault:
        case "missing":
            file.unlink()
        case "changed":
            file.write_text("b")
        case "added":
            (saved / "inbox" / "more.csv").write_text("b")
        case "link":
            (saved / "inbox" / "link").symlink_to("/etc/hostname")
        case _:
            (saved / MANIFEST).unlink()
    with pytest.raises(BadBackup):
        restore(home, saved, tmp_path / "new")


@pytest.mark.parametrize("name", ["../out", "/out", "inbox/../../out"])
def test_no_file_leads_out_of_the_home(home, tmp_path, name):
    _pack(tmp_path / "bad.tar.zst", tarfile.TarInfo(name))
    with pytest.raises(BadBackup, match="leads out"):
        restore(home, tmp_path / "bad.tar.zst", tmp_path / "deep" / "new")
    assert not [*tmp_path.rglob("out")]


def test_links_and_devices_are_refused(home, tmp_path):
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    _pack(tmp_path / "bad.tar.zst", link)
    with pytest.raises(BadBackup, match="not a plain file"):
        restore(home, tmp_path / "bad.tar.zst", tmp_path / "new")


def _pack(place, member):
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.addfile(member, BytesIO())
    place.write_bytes(zstandard.compress(packed.getvalue()))


def test_the_commands(home, tmp_path):
    def twin(*arguments):
        return CliRunner().invoke(app, [str(one) for one in arguments])

    saved = tmp_path / "saved.tar.zst"
    told = json.loads(twin("backup", saved, "--json").output)
    assert told["files"] > 5
    assert twin("backup", saved).exit_code == 2
    assert twin("restore", saved).exit_code == 2
    assert twin("restore", saved, "--into", tmp_path / "new").exit_code == 0
    assert (tmp_path / "new" / "answers" / "a.jsonl").exists()


@pytest.fixture
def server():
    """The address of a database of this test's own."""
    psycopg = pytest.importorskip("psycopg")
    if shutil.which("pg_dump") is None:
        pytest.skip("pg_dump is not installed")
    try:
        admin = psycopg.connect(
            "postgresql://postgres@127.0.0.1:5432/postgres", autocommit=True, connect_timeout=2
        )
    except psycopg.OperationalError:
        pytest.skip("no PostgreSQL answers on 127.0.0.1:5432")
    name = f"twin_backup_{os.getpid()}"
    with admin:
        admin.execute(f"CREATE DATABASE {name}")
        yield f"postgresql://postgres@127.0.0.1:5432/{name}"
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_databases_of_a_postgresql_server_are_saved_and_restored(home, server, tmp_path, monkeypatch):
    import psycopg

    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", server.replace(":", "+psycopg:", 1))
    with psycopg.connect(server) as database:
        database.execute("CREATE TABLE runs (id INTEGER)")
        database.execute("INSERT INTO runs VALUES (7)")
    saved = back_up(home, tmp_path / "saved.tar.zst").place
    with psycopg.connect(server) as database:
        database.execute("UPDATE runs SET id = 8")
    restore(home, saved, replaces=True)
    with psycopg.connect(server) as database:
        assert database.execute("SELECT id FROM runs").fetchall() == [(7,)]


def test_a_server_that_is_away_is_told(home, tmp_path, monkeypatch):
    if shutil.which("pg_dump") is None:
        pytest.skip("pg_dump is not installed")
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql://me:sesame@127.0.0.1:1/airflow")
    with pytest.raises(DatabaseFailed, match="pg_dump failed") as told:
        back_up(home, tmp_path / "saved.tar.zst")
    assert "sesame" not in str(told.value)
    assert not [*tmp_path.glob("*saved*")]
