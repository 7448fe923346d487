"""The main job: everything from nothing on one machine, through real Airflow."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid

from twin.app.describing import flat_example
from twin.app.local_airflow import Airflow, running_airflow
from twin.core.configuration import FAMILIES, Configuration
from twin.core.prediction import Prediction
from twin.core.settings import Settings
from twin.core.tables import TABLES

CHAIN = ("ingest_reports", "build_features", "train_models", "predict_requests")
EXAMPLES = "examples.csv"


class ChainFailed(Exception):
    """A DAG run of the chain failed or did not come."""


def run(settings: Settings, console: Console, timeout_s: float = 900) -> None:
    _place_example_requests(settings)
    with console.status("starting Airflow") as status:
        started = time.monotonic()
        with running_airflow(settings) as airflow:
            airflow.wait_for_dags(CHAIN)
            console.print(f"Airflow is up at {airflow.url} [dim]({time.monotonic() - started:.0f} s)[/dim]")
            _follow_chain(airflow, console, status, timeout_s)
            status.update("ending Airflow")
    _print_summary(settings, console)


def _place_example_requests(settings: Settings) -> None:
    """One request per experiment family, so that the chain ends in answers."""
    rows = [{"request_id": f"example-{family}"} | flat_example(family) for family in FAMILIES]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    path = settings.home / "requests" / EXAMPLES
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


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
    from training.registry import champion_summary

    lake = Lake(settings)
    grid = Grid("table", "rows", "version", title="The lake", title_justify="left")
    for table in TABLES.values():
        if table.layer != "file":
            written = lake.written(table)
            grid.add_row(f"{table.layer}/{table.name}", str(written.rows), str(written.version))
    console.print(grid)

    model = champion_summary(settings)
    console.print(
        f"Model [bold]throughput[/bold] version {model.version}: "
        f"median error {model.scores['median_ape']:.1f}% on {model.scores['n']:.0f} configurations "
        "of groups it had not seen."
    )
    answers = settings.home / "answers" / EXAMPLES
    console.print(_examples_grid(settings, answers))
    places = {
        "Data quality": summary_page(settings),
        "Answers": answers,
        "Airflow logs": settings.home / "airflow" / "logs",
    }
    for what, where in places.items():
        console.print(f"{what}: {where}", soft_wrap=True)


def _examples_grid(settings: Settings, answers: Path) -> Grid:
    """What the registered model answered, and beside it what the analytic model says."""
    from twin.app.calibration import analytic_predictor

    asked = [Configuration.from_flat(flat_example(family)) for family in FAMILIES]
    analytic = analytic_predictor(settings).predict(asked)
    grid = Grid(title="Example requests, msgs/s", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in ("request", "regression (90%)", "analytic (90%)"):
        grid.add_column(name, no_wrap=True)
    grid.add_column("limited by, or excused")
    with answers.open(newline="") as file:
        for row, other in zip(csv.DictReader(file), analytic, strict=True):
            learned = (
                _rounded(*(float(row[name]) for name in ("value", "lo90", "hi90"))) if row["value"] else ""
            )
            if isinstance(other, Prediction):
                physics, remark = _rounded(other.value, other.lo90, other.hi90), other.bottleneck
            else:
                physics, remark = "", other.excuse
            grid.add_row(row["request_id"].removeprefix("example-"), learned, physics, remark)
    return grid


def _rounded(value: float, low: float, high: float) -> str:
    return f"{value:.0f} ({low:.0f} to {high:.0f})"
