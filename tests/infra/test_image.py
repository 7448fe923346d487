"""The image's recipe and the small programs in it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from .commands import problem_of
from .compose import INFRA, PROJECT

PROGRAMS = INFRA / "image"
RECIPE = (INFRA / "Dockerfile").read_text()
IGNORED = (INFRA / "Dockerfile.dockerignore").read_text().split("\n")


def instructions() -> list[tuple[str, str]]:
    """Each with what it says, lines that go on put together."""
    lines = [line for line in RECIPE.splitlines() if not line.startswith("#")]
    whole = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(first, rest) for first, _, rest in (line.partition(" ") for line in whole.splitlines() if line)]


def those(kind: str) -> list[str]:
    return [rest for first, rest in instructions() if first == kind]


def test_every_base_has_a_full_version():
    assert all(
        re.match(r"python:3\.11\.\d+-slim-bookworm(@sha256:\w{64})?( AS \w+)?$", one) for one in those("FROM")
    )


def test_it_runs_as_somebody_without_rights():
    assert those("USER") == ["10001:10001"]
    # after the last step that needs more
    assert [kind for kind, _ in instructions()].index("USER") > max(
        at for at, (kind, _) in enumerate(instructions()) if kind == "RUN"
    )


def test_nothing_is_fetched_but_packages_with_pins():
    assert not those("ADD")
    fetching = [one for one in those("RUN") if "install" in one and ("pip" in one)]
    assert all(
        re.search(r"-c constraints\.txt|-r infra/image/object-store\.txt|--no-deps -e \.", one)
        for one in fetching
    )
    pins = [line for line in (PROGRAMS / "object-store.txt").read_text().splitlines() if line[0] != "#"]
    assert all("==" in one for one in pins)


def test_no_secret_is_in_a_layer():
    assert not those("ARG")
    assert not any(re.search(r"PASSWORD|SECRET|TOKEN|KEY", one) for one in those("ENV"))
    taken = [line[1:] for line in IGNORED if line.startswith("!")]
    assert "*" in IGNORED
    assert not any(
        fnmatch(path, f"{one}*") for one in taken for path in ("infra/secrets/x", ".twin/x", ".git/x")
    )


def test_what_is_copied_is_let_through():
    taken = [line[1:] for line in IGNORED if line.startswith("!")]
    sources = [one for copied in those("COPY") if "--from" not in copied for one in shlex.split(copied)[:-1]]
    for source in sources:
        assert source == "." or any(source.startswith(one) for one in taken), source


def test_its_own_command_and_health_check_are_real():
    assert problem_of(json.loads(those("CMD")[-1])) is None
    [health] = those("HEALTHCHECK")
    assert problem_of(json.loads(health.partition("CMD ")[2])) is None
    assert those("ENTRYPOINT") == ['["entrypoint"]']


@pytest.fixture
def told():
    """An address that tells what Airflow tells."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/health" else 503)
            self.end_headers()
            self.wfile.write(b'{"scheduler": {"status": "healthy"}, "triggerer": {"status": "unhealthy"}}')

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["/health"], 0),
        (["/health", "scheduler"], 0),
        (["/health", "triggerer"], 1),
        (["/health", "nobody"], 1),
        (["/gone"], 1),
    ],
)
def test_health_is_what_the_address_says(told, arguments, code):
    path, *part = arguments
    done = subprocess.run(
        [sys.executable, PROGRAMS / "healthy", told + path, *part], capture_output=True, check=False
    )
    assert done.returncode == code


def test_health_of_nobody_is_no_health():
    done = subprocess.run(
        [sys.executable, PROGRAMS / "healthy", "http://127.0.0.1:9/"], capture_output=True, check=False
    )
    assert done.returncode == 1


def test_secrets_reach_the_command_and_its_private_files(tmp_path):
    secrets, home = tmp_path / "secrets", tmp_path / "home"
    secrets.mkdir()
    home.mkdir()
    (secrets / "one.env").write_text("# a note\nFIRST='it is a $ecret'\n")
    (secrets / "tokens.json").write_text("{}")
    (secrets / "spark.conf").write_text("spark.authenticate.secret x\n")
    told = {
        "SECRETS": str(secrets),
        "HOME": str(home),
        "TWIN_TOKENS_FILE": str(home / "tokens.json"),
        "SPARK_CONF_DIR": str(INFRA / "spark" / "compose"),
    }
    printed = subprocess.run(
        [PROGRAMS / "entrypoint", "sh", "-c", 'printf %s "$FIRST|$SPARK_CONF_DIR"'],
        env=dict(os.environ) | told, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert printed == f"it is a $ecret|{home}/spark"
    settings = home / "spark" / "spark-defaults.conf"
    assert settings.read_text().endswith("spark.authenticate.secret x\n")
    assert {(home / "tokens.json").stat().st_mode & 0o777, settings.stat().st_mode & 0o777} == {0o600}


def test_an_executor_is_started_as_spark_asks_for_it(tmp_path):
    """With a Java that tells how it was called."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    told = {
        "JAVA_HOME": str(tmp_path), "SPARK_HOME": "/spark", "SPARK_EXECUTOR_MEMORY": "2g",
        "SPARK_EXECUTOR_CORES": "4", "SPARK_JAVA_OPT_0": "-Done=a b", "SPARK_JAVA_OPT_1": "-Dtwo=*",
        "SPARK_DRIVER_URL": "spark://driver", "SPARK_EXECUTOR_ID": "1", "SPARK_APPLICATION_ID": "app",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.1", "SPARK_EXECUTOR_POD_NAME": "pod",
        "SPARK_RESOURCE_PROFILE_ID": "0",
    }  # fmt: skip
    called = subprocess.run(
        [PROGRAMS / "executor"], env=dict(os.environ) | told,
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert {"-Done=a b", "-Dtwo=*", "-Xmx2g", "/spark/jars/*"} <= set(called)
    options = dict(zip(called[-14::2], called[-13::2], strict=True))
    assert options["--driver-url"] == "spark://driver"
    assert options["--podName"] == "pod"
    assert options["--resourceProfileId"] == "0"


@pytest.mark.long
def test_the_recipes_steps_make_an_environment_that_works(tmp_path):
    """Every step that installs, run here for real: in a folder instead of /opt, without root."""
    image = tmp_path / "opt"
    for source in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        _copy(PROJECT / source, image / "brokertwin" / source)
    for source in ("twin", "features", "expectations", "training", "dags", "infra/image", "infra/spark"):
        _copy(PROJECT / source, image / "brokertwin" / source)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("TWIN", "PYTHON"))
    } | {
        "VIRTUAL_ENV": str(image / "venv"),
        "PATH": f"{image / 'venv' / 'bin'}:{os.environ['PATH']}",
        "TWIN_HOME": str(tmp_path / "home"),
    }
    environment.pop("JAVA_HOME", None)
    # making a user takes root
    steps = [one for one in those("RUN") if "useradd" not in one]
    assert len(steps) == 5
    for step in steps:
        # `python` is the base image's until the environment is there
        here = step.replace("python -m venv", f"{sys.executable} -m venv").replace("'/opt'", f"'{image}'")
        subprocess.run(
            ["sh", "-ec", here], cwd=image / "brokertwin", env=environment, check=True, timeout=900
        )
    environment["JAVA_HOME"] = str(image / "java")
    for check in (
        ["twin", "--help"],
        ["airflow", "version"],
        ["python", "-c", "import boto3, psycopg, asyncpg, celery, mlflow, pyspark"],
        [str(image / "java" / "bin" / "java"), "-version"],
        ["uv", "pip", "check"],
    ):
        done = subprocess.run(
            check, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (check, done.stdout, done.stderr)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-r", source, target], check=True)
