"""The compose file as compose, and we, want it. What it says is run by `make topology`."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
import yaml

from .commands import problem_of
from .compose import FILE, INFRA, compose, is_ours, mounted_secret, services
from .variables import unknown_variables

NAMES = list(services())
LASTING = [name for name in NAMES if not services()[name].get("healthcheck", {}).get("disable")]
PORTS = re.compile(r"127\.0\.0\.1:\d+:\d+")
PINNED = re.compile(r"[\w./-]+:\d+\.\d+[\w.-]*(@sha256:[0-9a-f]{64})?")
KEYS = {
    "build", "cap_drop", "command", "depends_on", "deploy", "entrypoint", "environment", "expose",
    "healthcheck", "hostname", "image", "init", "logging", "networks", "pids_limit", "ports", "pull_policy",
    "read_only", "restart", "secrets", "security_opt", "shm_size", "stop_grace_period", "tmpfs", "user",
    "volumes", "working_dir",
}  # fmt: skip


@pytest.fixture(params=NAMES)
def service(request):
    return services()[request.param]


def test_only_what_the_specification_knows_is_said(service):
    assert set(compose()) - {"name", "services", "networks", "volumes", "secrets"} == {
        key for key in compose() if key.startswith("x-")
    }
    assert set(service) <= KEYS


def test_an_image_has_a_version_and_never_the_latest(service):
    assert PINNED.fullmatch(service["image"])


def test_a_service_is_nobody_in_particular_and_can_do_little(service):
    user, group = map(int, service["user"].split(":"))
    assert user > 0
    assert group > 0
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service


def test_a_service_has_limits_and_a_way_to_come_back(service):
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}
    assert service["pids_limit"] > 0
    assert service["restart"] == "unless-stopped" or service["healthcheck"].get("disable")


@pytest.mark.parametrize("name", LASTING)
def test_what_lasts_tells_its_health(name):
    check = services()[name]["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert {"interval", "timeout", "retries"} <= set(check)


def test_ports_are_published_on_loopback_only(service):
    assert all(PORTS.fullmatch(one) for one in service.get("ports", ()))


def test_what_is_depended_on_exists_and_can_meet_the_condition():
    for name in NAMES:
        for needed, how in services()[name].get("depends_on", {}).items():
            assert (how["condition"] == "service_healthy") == (needed in LASTING), (name, needed)


def test_networks_volumes_and_secrets_are_declared_and_used():
    whole = compose()
    used = {
        "networks": {one for name in NAMES for one in services()[name]["networks"]},
        "volumes": {
            one.split(":")[0]
            for name in NAMES
            for one in services()[name].get("volumes", ())
            if not one.startswith(".")
        },
        "secrets": {mounted_secret(one) for name in NAMES for one in services()[name].get("secrets", ())},
    }
    assert {kind: set(whole[kind]) for kind in used} == used
    assert whole["networks"]["data"]["internal"]


def test_data_stays_off_the_front_network():
    at_the_front = {name for name in NAMES if "front" in services()[name]["networks"]}
    assert at_the_front == {name for name in NAMES if services()[name].get("ports")}
    assert not at_the_front & {"postgres", "redis", "store", "spark-master", "airflow-worker"}


def test_no_variable_holds_a_secret(service):
    for name, value in (service.get("environment") or {}).items():
        assert not re.search(r"PASSWORD|SECRET|TOKEN|KEY|CONN$", name) or name.endswith(("_FILE", "_URL")), (
            name
        )
        assert not re.search(r"://[^/@]*:[^/@]+@", str(value)), name


def test_secrets_come_from_the_command_that_makes_them(tmp_path):
    folder = tmp_path / "made"
    subprocess.run([INFRA / "new-secrets", folder], check=True, capture_output=True)
    made = {one.name for one in folder.iterdir()}
    assert made == {one["file"].removeprefix("./secrets/") for one in compose()["secrets"].values()}
    assert folder.stat().st_mode & 0o077 == 0
    again = subprocess.run([INFRA / "new-secrets", folder], check=False, capture_output=True, text=True)
    assert (again.returncode, "is there already" in again.stderr) == (1, True)


def test_secrets_are_kept_out_of_commits():
    ignored = subprocess.run(
        ["git", "check-ignore", "--quiet", "infra/secrets/tokens.json"], cwd=INFRA.parent, check=False
    )
    assert ignored.returncode == 0


def test_commands_are_real_with_real_options():
    for name in NAMES:
        service = services()[name]
        if is_ours(service):
            assert problem_of([str(one) for one in service["command"]]) is None, name


def test_variables_are_those_that_something_reads():
    ours = [one for one in services().values() if is_ours(one)]
    told = [name for one in ours for name in one.get("environment", ())]
    assert unknown_variables(told) == set()


@pytest.mark.skipif(not shutil.which("docker"), reason="docker is not installed")
def test_compose_itself_takes_it(tmp_path):
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker has no compose plugin here")
    done = subprocess.run(
        ["docker", "compose", "-f", FILE, "config", "--quiet"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_merge_of_anchors_loses_nothing():
    """YAML takes the first of several merged maps; compose does too."""
    whole = yaml.safe_load(FILE.read_text())
    platform = whole["x-platform"]
    for name in ("airflow-worker", "tracking", "serving", "page", "spark-worker-1"):
        assert platform.items() <= whole["services"][name]["environment"].items(), name
