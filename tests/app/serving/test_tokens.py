"""The tokens: made up once, kept to their owner, compared and nothing else."""

from __future__ import annotations

import base64
import json
import threading

import pytest
from typer.testing import CliRunner

from training.registry import Registry
from twin.app.cli import app
from twin.app.landing import Landing
from twin.app.local_airflow import airflow_environment, password, passwords_file
from twin.app.services import logs_folder
from twin.app.serving.tokens import BadTokens, kept_tokens
from twin.core.kept import kept_secret
from twin.core.settings import Settings

GOOD = {"reader": "r" * 32, "operator": "o" * 32}


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("TWIN_HOME", str(tmp_path / "home"))
    return Settings.from_environment()


def basic(user, token):
    return "Basic " + base64.b64encode(f"{user}:{token}".encode()).decode()


def test_they_are_made_up_once_and_belong_to_their_owner(settings):
    first = kept_tokens(settings)
    assert kept_tokens(settings).of == first.of
    assert first.of["reader"] != first.of["operator"]
    assert all(len(one) >= 40 for one in first.of.values())
    assert settings.tokens_file.stat().st_mode & 0o777 == 0o600
    assert settings.home.stat().st_mode & 0o777 == 0o700


def test_every_secret_of_a_home_belongs_to_its_owner(settings):
    password(settings)
    airflow_environment(settings, 8080)
    for secret in (passwords_file(settings), settings.home / "airflow" / "jwt_secret"):
        assert secret.stat().st_mode & 0o777 == 0o600
    assert settings.home.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("first", [lambda one: Landing(one).open(), logs_folder, Registry])
def test_whoever_makes_a_home_makes_it_private(settings, first):
    first(settings)
    assert settings.home.stat().st_mode & 0o777 == 0o700


def test_of_many_that_start_at_once_all_have_the_same_whole_secret(tmp_path):
    ready, found = threading.Barrier(8), []

    def start(number):
        ready.wait()
        found.append(kept_secret(tmp_path / "secret", str(number) * 1000))

    threads = [threading.Thread(target=start, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(set(found)) == 1
    assert len(found[0]) == 1000
    assert [one.name for one in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize("role", ["reader", "operator"])
def test_a_token_is_known_in_both_schemes(settings, role):
    tokens = kept_tokens(settings)
    assert tokens.role_of(f"Bearer {tokens.of[role]}") == role
    assert tokens.role_of(f"bearer {tokens.of[role]}") == role
    assert tokens.role_of(basic(role, tokens.of[role])) == role


def test_what_is_no_token_is_nobody_s(settings):
    tokens = kept_tokens(settings)
    reader, operator = tokens.of["reader"], tokens.of["operator"]
    for header in (
        None, "", "Bearer", "Bearer ", "Bearer nobody", reader, f"Token {reader}", f"Digest {reader}",
        f"Bearer {reader[:-1]}", f"Bearer {reader}x", f"Bearer {reader} {operator}", f"Basic {reader}",
        "Basic %%%", "Basic /w==", basic("operator", reader), basic("", operator), basic("admin", operator),
        "Bearer \xff\xfe",
    ):  # fmt: skip
        assert tokens.role_of(header) is None, header


def test_a_token_is_not_told_by_accident(settings):
    tokens = kept_tokens(settings)
    assert not any(one in repr(tokens) + str(tokens) for one in tokens.of.values())


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o620, 0o602])
def test_a_file_that_others_read_or_change_is_refused_in_a_sentence(settings, mode):
    kept_tokens(settings)
    settings.tokens_file.chmod(mode)
    with pytest.raises(BadTokens, match="chmod 600"):
        kept_tokens(settings)


def test_a_file_that_its_group_reads_is_told(settings, caplog):
    kept_tokens(settings)
    settings.tokens_file.chmod(0o440)
    kept_tokens(settings)
    assert "can be read by its group" in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        "",
        "topsecretnotjson",
        "[]",
        json.dumps({"reader": GOOD["reader"]}),
        json.dumps(GOOD | {"operator": "short"}),
        json.dumps(GOOD | {"operator": ["o" * 32]}),
        json.dumps(GOOD | {"operator": GOOD["reader"]}),
    ],
)
def test_a_file_that_cannot_be_relied_on_is_refused_and_not_quoted(settings, content):
    settings.folder()
    settings.tokens_file.touch(mode=0o600)
    settings.tokens_file.write_text(content)
    with pytest.raises(BadTokens) as refused:
        kept_tokens(settings)
    assert str(settings.tokens_file) in str(refused.value)
    assert not any(secret in str(refused.value) for secret in (*GOOD.values(), "topsecret"))


def test_the_command_prints_one(settings):
    printed = CliRunner().invoke(app, ["token", "reader"])
    assert printed.exit_code == 0
    assert printed.stdout.strip() == kept_tokens(settings).of["reader"]
    assert CliRunner().invoke(app, ["token", "boss"]).exit_code == 2
    settings.tokens_file.chmod(0o644)
    refused = CliRunner().invoke(app, ["token", "operator"])
    assert refused.exit_code == 1
    assert kept_secret(settings.tokens_file, "") not in refused.output
