"""Which environment variables somebody reads: ours, Airflow's, MLflow's, and those of what runs beneath."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from .compose import PROJECT

_OURS = re.compile(r"""["'](TWIN_[A-Z_]+|MLFLOW_TRACKING_URI)["']""")
# read by Spark, Java, boto3, MLflow and Airflow themselves
_OTHERS = {
    "AIRFLOW_HOME", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "MLFLOW_DISABLE_TELEMETRY", "SPARK_CONF_DIR",
    "SPARK_DAEMON_MEMORY", "SPARK_LOCAL_DIRS", "SPARK_LOCAL_HOSTNAME", "SPARK_NO_DAEMONIZE",
}  # fmt: skip


def unknown_variables(names: Iterable[str]) -> set[str]:
    return {one for one in names if one not in _OTHERS | ours() and not _is_airflows(one)}


@cache
def ours() -> frozenset[str]:
    """As our code reads them."""
    files = [file for package in ("twin", "features") for file in (PROJECT / package).rglob("*.py")]
    return frozenset(name for file in files for name in _OURS.findall(file.read_text()))


def _is_airflows(name: str) -> bool:
    match = re.fullmatch(r"AIRFLOW__([A-Z_]+?)__([A-Z_]+)", name)
    if match is None:
        return False
    section, option = (one.lower() for one in match.groups())
    return option in _airflows_options().get(section, {}).get("options", {})


@cache
def _airflows_options() -> dict[str, dict[str, dict[str, object]]]:
    """Airflow's own description of its configuration, that of its installed providers included."""
    from airflow.configuration import retrieve_configuration_description

    described: dict[str, dict[str, dict[str, object]]] = retrieve_configuration_description()
    return described
