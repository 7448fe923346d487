"""The services behind their gate: in this process, and listening on an address that other machines reach."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import psutil
import pytest
from starlette.testclient import TestClient

from training.registry import CHAMPION, MODEL, Registry
from twin.app.serving.listening import server
from twin.app.serving.tokens import kept_tokens
from twin.core.settings import Settings

# any model will do to see which one answers
ECHO = """
import mlflow

class Echo(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return model_input.assign(version={version})

mlflow.models.set_model(Echo())
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """A home for all tests of a module. What MLflow's server is told by the environment ends with them."""
    import mlflow

    before = dict(os.environ)
    os.environ["TWIN_HOME"] = str(tmp_path_factory.mktemp("serving") / "home")
    yield Settings.from_environment()
    # the server points this process at its own registry
    mlflow.set_registry_uri("")
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def outside(settings):
    """Settings of services that other machines can reach."""
    return replace(settings, host="0.0.0.0")


@pytest.fixture(scope="module")
def tokens(outside):
    return kept_tokens(outside).of


@pytest.fixture(scope="module")
def bearer(tokens):
    def header(role):
        return {"Authorization": f"Bearer {tokens[role]}"}

    return header


@pytest.fixture(scope="module")
def outer_address():
    found = [
        one.address
        for addresses in psutil.net_if_addrs().values()
        for one in addresses
        if one.family == socket.AF_INET and not one.address.startswith("127.")
    ]
    if not found:
        pytest.skip("this machine has no address but loopback")
    return found[0]


def asked(app, peer="192.0.2.7", **options):
    """A client at another machine, unless told otherwise."""
    return TestClient(app, base_url="http://127.0.0.1:8050", client=(peer, 50000), **options)


@pytest.fixture(scope="session")
def ask():
    return asked


@pytest.fixture(scope="session")
def listening():
    """A service as its command starts it, in a thread of this process."""

    @contextmanager
    def started(app, host):
        with socket.socket() as one:
            one.bind((host, 0))
            port = one.getsockname()[1]
        running = server(app, host, port)
        thread = threading.Thread(target=running.run)
        thread.start()
        try:
            while not running.started:
                assert thread.is_alive(), "the server ended"
                time.sleep(0.02)
            yield f"http://{host}:{port}"
        finally:
            running.should_exit = True
            thread.join()

    return started


@pytest.fixture(scope="module")
def register(settings, tmp_path_factory):
    """Makes a version that puts its own number beside what it was asked; the champion, if so wished."""
    folder = tmp_path_factory.mktemp("models")

    def made(champion=True):
        import mlflow

        registry = Registry(settings)
        newest = registry.newest()
        version = str(1 if newest is None else int(newest.version) + 1)
        file = folder / f"model_{version}.py"
        file.write_text(ECHO.format(version=version))
        mlflow.pyfunc.log_model(
            name=MODEL, python_model=str(file), pip_requirements=[], registered_model_name=MODEL
        )
        if champion:
            mlflow.MlflowClient().set_registered_model_alias(MODEL, CHAMPION, version)
        return version

    return made
