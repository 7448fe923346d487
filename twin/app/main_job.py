"""The main job: everything from nothing on one machine, through real Airflow."""

from __future__ import annotations

import json
import time
from importlib import resources
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid

from twin.app.local_airflow import Airflow, running_airflow
from twin.core.settings import Settings
from twin.core.tables import TABLES

CHAIN = ("ingest_reports", "build_features", "train_models", "predict_requests")
SAMPLES = "requests.jsonl"


class ChainFailed(Exception):
    """A DAG run of the chain failed or did not come."""


def run(settings: Settings, console: Console, timeout_s: float = 900) -> None:
    _place_sample_requests(settings)
    with console.status("starting Airflow") as status:
        started = time.monotonic()
        with running_airflow(settings) as airflow:
            airflow.wait_for_dags(CHAIN)
            console.print(f"Airflow is up at {airflow.url} [dim]({time.monotonic() - started:.0f} s)[/dim]")
            _follow_chain(airflow, console, status, timeout_s)
            status.update("ending Airflow")
    _print_summary(settings, console)


def _place_sample_requests(settings: Settings) -> None:
    """An unmeasured configuration of each system, with and without an offered rate, so that the chain ends in
    answers."""
    path = settings.home / "requests" / SAMPLES
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(resources.files("twin.app").joinpath("samples", SAMPLES).read_bytes())


def _follow_chain(airflow: Airflow, console: Console, status: Any, timeout_s: float) -> None:
    """Trigger the first DAG; the assets that each run leaves start the next."""
    before = {dag_id: {run["dag_run_id"] for run in airflow.runs(dag_id)} for dag_id in CHAIN}
    airflow.trigger(CHAIN[0])
    deadline = time.monotonic() + timeout_s
    for dag_id in CHAIN:
        began = time.monotonic()
        status.update(f"{dag_id} is running")
        run = _finished_run(airflow, dag_id, before[dag_id], deadline)
        if run["state"] != "success":
            folder = airflow.logs / "tasks" / f"dag_id={dag_id}" / f"run_id={run['dag_run_id']}"
            raise ChainFailed(f"{dag_id} failed; its log is under {folder}")
        console.print(f"[green]✓[/green] {dag_id} [dim]({time.monotonic() - began:.0f} s)[/dim]")


def _finished_run(airflow: Airflow, dag_id: str, known: set[str], deadline: float) -> dict[str, Any]:
    while time.monotonic() < deadline:
        for run in airflow.runs(dag_id):
            if run["dag_run_id"] not in known and run["state"] in ("success", "failed"):
                return run
        time.sleep(1)
    raise ChainFailed(f"{dag_id} had no finished run in time")


def _print_summary(settings: Settings, console: Console) -> None:
    """What the chain left behind, read from the tables and files themselves."""
    from expectations.summary import summary_page
    from features.lake import Lake
    from training.registry import Registry
    from training.training import headline

    lake = Lake(settings)
    grid = Grid("table", "rows", "version", title="The lake", title_justify="left")
    for table in TABLES.values():
        if table.layer != "file":
            written = lake.written(table)
            grid.add_row(f"{table.layer}/{table.name}", str(written.rows), str(written.version))
    console.print(grid)

    registry = Registry(settings)
    model = registry.told(registry.champion())
    first = headline(model.scores)
    console.print(
        f"Model [bold]throughput[/bold] version {model.version}: {model.reason}. On {first['n']:.0f} "
        f"configurations it had not seen: median error {first['median_ape']:.2f}%, 90% of them within "
        f"{first['p90_ape']:.1f}%; the 90% interval covers {100 * first['coverage90']:.1f}%."
    )
    answers = settings.home / "answers" / SAMPLES
    console.print(_samples_grid(answers))
    places = {
        "Data quality": summary_page(settings),
        "Answers": answers,
        "Airflow logs": settings.home / "airflow" / "logs",
    }
    for what, where in places.items():
        console.print(f"{what}: {where}", soft_wrap=True)


def _samples_grid(answers: Path) -> Grid:
    grid = Grid(title="Sample requests, msgs/s", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    grid.add_column("request")
    for name in ("hybrid", "90% from", "to"):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("limited by, or excused")
    for line in answers.read_text().splitlines():
        row = json.loads(line)
        numbers = [f"{row[name]:.4g}" if row[name] is not None else "" for name in ("value", "lo90", "hi90")]
        grid.add_row(row["request_id"], *numbers, row["bottleneck"] or row["excuse"])
    return grid
