"""The five reports in a lake of their own, once for all tests of the commands."""

from __future__ import annotations

import psutil
import pytest
from typer.testing import CliRunner

from features.lake import Lake
from twin.app.cli import app
from twin.app.pipeline import ingest
from twin.core.settings import Settings
from twin.sources.documents import shipped_documents


@pytest.fixture(scope="session")
def settings_with_all(built_once, request):
    with pytest.MonkeyPatch.context() as patch:

        def settings_of(home):
            patch.setenv("TWIN_HOME", str(home))
            return Settings.from_environment()

        def build(home):
            # a worker that finds the tables built may never need Spark
            request.getfixturevalue("spark")
            ingest(settings_of(home), shipped_documents())

        return settings_of(built_once("all-reports", build))


@pytest.fixture
def lake(settings_with_all):
    return Lake(settings_with_all)


@pytest.fixture
def twin_with_all(settings_with_all, monkeypatch):
    monkeypatch.setenv("TWIN_HOME", str(settings_with_all.home))

    def call(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return call


@pytest.fixture
def started_for():
    def started_for(home):
        """Living processes whose environment names this home."""
        found = []
        for process in psutil.process_iter():
            try:
                if (
                    process.environ().get("TWIN_HOME") == str(home)
                    and process.status() != psutil.STATUS_ZOMBIE
                ):
                    found.append(" ".join(process.cmdline()))
            except psutil.Error:
                continue
        return found

    return started_for
