"""The manifests and the values for Airflow's chart."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .commands import problem_of
from .compose import INFRA, services
from .variables import unknown_variables

FOLDER = INFRA / "kubernetes"
VALUES = yaml.safe_load((FOLDER / "airflow-values.yaml").read_text())
KNOWN = yaml.safe_load(Path(__file__).with_name("airflow_chart_keys.yaml").read_text())
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
OURS = ("tracking", "serving", "page")


def manifests() -> list[dict[str, Any]]:
    return [
        one for file in KUSTOMIZATION["resources"] for one in yaml.safe_load_all((FOLDER / file).read_text())
    ]


def of(kind: str, name: str) -> dict[str, Any]:
    [found] = [one for one in manifests() if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def pod_of(name: str) -> dict[str, Any]:
    pod: dict[str, Any] = of("Deployment", name)["spec"]["template"]["spec"]
    return pod


def container_of(name: str) -> dict[str, Any]:
    [container] = pod_of(name)["containers"]
    return container


def executor_pod() -> dict[str, Any]:
    pod: dict[str, Any] = yaml.safe_load((FOLDER / "executor-pod.yaml").read_text())["spec"]
    return pod


@pytest.mark.parametrize("pod", [*map(pod_of, OURS), executor_pod()], ids=[*OURS, "executor"])
def test_a_pod_is_nobody_in_particular_and_can_do_little(pod):
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["fsGroup"] == 10001
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


@pytest.mark.parametrize("name", OURS)
def test_a_pod_runs_what_compose_runs(name):
    container, service = container_of(name), services()[name]
    assert container["args"] == service["command"]
    assert problem_of(container["args"]) is None
    told = {one["name"]: one["value"] for one in container["env"]}
    assert told.items() <= service["environment"].items()
    assert unknown_variables(told) == set()


@pytest.mark.parametrize("name", OURS)
def test_health_is_asked_from_inside(name):
    container = container_of(name)
    port = container["ports"][0]["containerPort"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        program, url = container[probe]["exec"]["command"]
        assert program == "healthy"
        assert url.startswith(f"http://127.0.0.1:{port}/")
    assert {"requests", "limits"} == set(container["resources"])


@pytest.mark.parametrize("name", OURS)
def test_a_service_finds_its_pods_and_one_of_them_stays(name):
    deployment = of("Deployment", name)
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert of("Service", name)["spec"]["selector"].items() <= labels.items()
    budget = of("PodDisruptionBudget", name)["spec"]
    assert budget["selector"]["matchLabels"].items() <= labels.items()
    assert budget["minAvailable"] < deployment["spec"]["replicas"]


def test_who_is_not_named_reaches_nobody():
    policy = of("NetworkPolicy", "nobody")["spec"]
    assert policy == {"podSelector": {}, "policyTypes": ["Ingress"]}


def test_a_pod_mounts_only_what_exists():
    claims = {one["metadata"]["name"] for one in manifests() if one["kind"] == "PersistentVolumeClaim"}
    secrets = {one["metadata"]["name"]: one["stringData"] for one in _example_secrets()}
    for pod in (*map(pod_of, OURS), executor_pod()):
        volumes = {one["name"]: one for one in pod["volumes"]}
        assert {one["name"] for container in pod["containers"] for one in container["volumeMounts"]} == set(
            volumes
        )
        for volume in volumes.values():
            if "persistentVolumeClaim" in volume:
                assert volume["persistentVolumeClaim"]["claimName"] in claims
            for source in volume.get("projected", {}).get("sources", ()):
                keys = {item["key"] for item in source["secret"]["items"]}
                assert keys <= set(secrets[source["secret"]["name"]])


def _example_secrets() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / "secrets.example.yaml").read_text()))


def test_the_example_of_secrets_holds_none_and_is_not_applied():
    assert all(value == "" for one in _example_secrets() for value in one["stringData"].values())
    assert "secrets.example.yaml" not in KUSTOMIZATION["resources"]


def test_values_are_keys_of_the_chart():
    assert list(_strangers(VALUES, KNOWN)) == []


def _strangers(told: dict[str, Any], known: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, value in told.items():
        if name not in known:
            yield f"{path}{name}"
        elif known[name] and isinstance(value, dict):
            yield from _strangers(value, known[name], f"{path}{name}.")


def test_values_hold_no_secret_and_name_secrets_that_exist():
    text = (FOLDER / "airflow-values.yaml").read_text()
    assert not re.search(r"://[^/@\s]*:[^/@\s]+@", text)
    names = {one["metadata"]["name"] for one in _example_secrets()}
    told = {VALUES["data"][name] for name in ("metadataSecretName", "brokerUrlSecretName")}
    told |= {VALUES[name] for name in ("fernetKeySecretName", "jwtSecretName", "apiSecretKeySecretName")}
    assert told <= names


def test_airflow_gets_the_settings_that_compose_gives_it():
    told = {one["name"]: one["value"] for one in [*VALUES["env"], *VALUES["workers"]["env"]]}
    assert unknown_variables(told) == set()
    worker = services()["airflow-worker"]["environment"]
    elsewhere = {"TWIN_SPARK_MASTER", "SPARK_CONF_DIR", "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"}
    shared = told.keys() & worker.keys() - elsewhere
    assert {name: told[name] for name in shared} == {name: worker[name] for name in shared}


@pytest.mark.parametrize("part", ["migrateDatabaseJob", "apiServer", "scheduler", "triggerer", "workers"])
def test_airflows_commands_are_real(part):
    shell, flag, script = VALUES[part]["args"]
    assert (shell, flag) == ("bash", "-c")
    found = re.findall(r"airflow (?:[\w-]+)(?: (?!>|\|)[\w-]+)*", script)
    assert found
    for command in found:
        arguments = command.split()
        # a pool's size and text stand behind its name
        arguments += ["text"] if arguments[1:3] == ["pools", "set"] else []
        assert problem_of(arguments) is None, command


def test_executors_come_from_the_same_image_with_the_same_paths():
    lines = (FOLDER / "spark-defaults.conf").read_text().splitlines()
    told = dict(line.split(None, 1) for line in lines if line and line[0] != "#")
    assert told["spark.kubernetes.container.image"] == services()["page"]["image"]
    mounts = {one["name"]: one["mountPath"] for one in VALUES["workers"]["extraVolumeMounts"]}
    template = told["spark.kubernetes.executor.podTemplateFile"]
    assert template == f"{mounts['spark']}/executor-pod.yaml"
    assert "executor-pod.yaml" in KUSTOMIZATION["configMapGenerator"][0]["files"]
    accounts = {one["metadata"]["name"] for one in manifests() if one["kind"] == "ServiceAccount"}
    assert told["spark.kubernetes.authenticate.executor.serviceAccountName"] in accounts
    assert VALUES["workers"]["serviceAccount"]["name"] in accounts


@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")
def test_kubectl_puts_them_together():
    done = subprocess.run(["kubectl", "kustomize", FOLDER], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    assert len(made) == len(manifests()) + 1  # the settings of Spark
    assert {one["metadata"].get("namespace", "brokertwin") for one in made} == {"brokertwin"}
    images = re.findall(r"^ +image: (\S+)$", done.stdout, re.MULTILINE)
    assert set(images) == {services()["page"]["image"]}
