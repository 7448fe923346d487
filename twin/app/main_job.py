"""The main job: everything from nothing on one machine, through real Airflow."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.status import Status
from rich.table import Table as Grid

from twin.app.interrupts import remembered_interrupt
from twin.app.landing import Landing
from twin.app.local_airflow import Airflow, running_airflow
from twin.core.settings import Settings
from twin.core.tables import TABLES

DAGS = (
    "ingest_reports",
    "ingest_harness",
    "ingest_runs",
    "build_features",
    "quality_report",
    "train_models",
    "predict_requests",
    "sync_live",
    "tidy_home",
)
_SAMPLES = ("requests.jsonl", "cphtestp/results.csv.yaml", "cphtestp/results.csv")
_ANSWERS = "requests.jsonl"
_ACTIVE = ("queued", "running")
# longer than the scheduler takes to start what an asset event calls for
_QUIET_S = 6.0
_LOOK_AGAIN_S = 2.0


Interval = tuple[datetime, datetime]


class ChainFailed(Exception):
    """A DAG run failed, or the chain did not come to its end."""


@dataclass
class Stage:
    """The runs of one DAG: how long they took, and when its tasks were at work."""

    dag_id: str
    runs: int
    elapsed_s: float
    work: list[Interval]


def run(settings: Settings, console: Console, timeout_s: float = 900) -> None:
    """Drop the samples, ask for the reports, and wait until the assets have brought everything to its end."""
    now, began = datetime.now(UTC), time.monotonic()
    with (
        remembered_interrupt() as raise_lost_interrupt,
        console.status("starting Airflow") as status,
        running_airflow(settings) as airflow,
    ):
        _drop_samples(settings)
        airflow.wait_for_dags(DAGS)
        up = time.monotonic()
        console.print(f"Airflow is up at {airflow.url} [dim]({up - began:.0f} s)[/dim]")
        chain = _Chain(settings, airflow, console, status, raise_lost_interrupt, since=now)
        chain.ask_for_reports()
        chain.follow(timeout_s)
        if _is_behind(settings):
            airflow.trigger("train_models")
            chain.follow(timeout_s)
        done = time.monotonic()
        stages = chain.stages()
        status.update("ending Airflow")
    _print_times(console, stages, done - up, up - began, time.monotonic() - done)
    _print_summary(settings, console)


def _drop_samples(settings: Settings) -> None:
    """A harness file with its description, and an unmeasured configuration of each system with and without an
    offered rate, so that the chain ends in answers."""
    landing = Landing(settings)
    landing.open()
    samples = resources.files("twin.app").joinpath("samples")
    for name in _SAMPLES:
        (landing.inbox / Path(name).name).write_bytes(samples.joinpath(name).read_bytes())


def _is_behind(settings: Settings) -> bool:
    """Code can change what would be learned from the same tables, and no asset tells of it."""
    from training.registry import Registry
    from training.training import training_key

    return Registry(settings).with_key(training_key(settings)) is None


class _Chain:
    """The runs of all DAGs since a moment; what lands may start some before we ask."""

    def __init__(
        self,
        settings: Settings,
        airflow: Airflow,
        console: Console,
        status: Status,
        raise_lost_interrupt: Callable[[], None],
        since: datetime,
    ) -> None:
        self._landing, self._airflow = Landing(settings), airflow
        self._raise_lost_interrupt = raise_lost_interrupt
        self._console, self._status = console, status
        self._since = since
        self._told: set[str] = set()
        self._idle: set[str] = set()

    def ask_for_reports(self) -> None:
        """A new Airflow reads them without being asked."""
        time.sleep(_LOOK_AGAIN_S)
        if not self._runs("ingest_reports"):
            self._airflow.trigger("ingest_reports")

    def follow(self, timeout_s: float) -> None:
        """Until nothing is running, nothing waits, and nothing new has begun for a while."""
        began = busy = time.monotonic()
        while time.monotonic() - busy < _QUIET_S:
            self._raise_lost_interrupt()
            if time.monotonic() - began > timeout_s:
                raise ChainFailed("the chain did not come to its end in time; `twin up` shows where it is")
            runs = [run for dag_id in DAGS for run in self._runs(dag_id)]
            active = [run["dag_id"] for run in runs if run["state"] in _ACTIVE]
            if active or self._landing.counts()["waiting"]:
                busy = time.monotonic()
            self._status.update(f"{' and '.join(active) or 'what comes next'} is under way")
            for run in runs:
                self._tell(run)
            time.sleep(1)

    def stages(self) -> list[Stage]:
        return [
            _stage(dag_id, runs, [self._airflow.task_instances(dag_id, run["dag_run_id"]) for run in runs])
            for dag_id in DAGS
            if (runs := [run for run in self._runs(dag_id) if run["end_date"]])
        ]

    def _runs(self, dag_id: str) -> list[dict[str, Any]]:
        runs = self._airflow.runs(dag_id)
        return [run for run in runs if datetime.fromisoformat(run["queued_at"]) >= self._since]

    def _tell(self, run: dict[str, Any]) -> None:
        dag_id, run_id, state = run["dag_id"], run["dag_run_id"], run["state"]
        if state in _ACTIVE or run_id in self._told:
            return
        self._told.add(run_id)
        if state != "success":
            folder = self._airflow.logs / "tasks" / f"dag_id={dag_id}" / f"run_id={run_id}"
            raise ChainFailed(f"{dag_id} failed; its log is under {folder}")
        last = max(self._airflow.task_instances(dag_id, run_id), key=lambda task: task["end_date"] or "")
        idle = last["state"] == "skipped"
        if not idle or dag_id not in self._idle:
            said = "nothing to do" if idle else f"{_seconds([_interval(run)]):.0f} s"
            self._console.print(f"[green]✓[/green] {dag_id} [dim]({said})[/dim]")
        if idle:
            self._idle.add(dag_id)


def _stage(dag_id: str, runs: list[dict[str, Any]], tasks: list[list[dict[str, Any]]]) -> Stage:
    """A task that waits for others is not at work."""
    work = [
        _interval(one)
        for of_run in tasks
        for one in of_run
        if one["start_date"] and one["end_date"] and "Sensor" not in one["operator"]
    ]
    return Stage(dag_id, len(runs), _seconds([_interval(run) for run in runs]), work)


def _interval(one: dict[str, Any]) -> Interval:
    return datetime.fromisoformat(one["start_date"]), datetime.fromisoformat(one["end_date"])


def _seconds(intervals: list[Interval]) -> float:
    """How long at least one of them lasted."""
    seconds, until = 0.0, datetime.min.replace(tzinfo=UTC)
    for start, end in sorted(intervals):
        seconds += max(0.0, (end - max(start, until)).total_seconds())
        until = max(until, end)
    return seconds


def _print_times(console: Console, stages: list[Stage], chain_s: float, start_s: float, end_s: float) -> None:
    grid = Grid(title="Time", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    grid.add_column("stage")
    for name in ("runs", "seconds", "in tasks"):
        grid.add_column(name, justify="right")
    for stage in stages:
        grid.add_row(stage.dag_id, str(stage.runs), f"{stage.elapsed_s:.0f}", f"{_seconds(stage.work):.0f}")
    console.print(grid)
    idle = chain_s - _seconds([interval for stage in stages for interval in stage.work])
    console.print(
        f"Airflow itself: {start_s:.0f} s to start, {idle:.0f} of {chain_s:.0f} s without a task at work, "
        f"{end_s:.0f} s to end.\n"
    )


def _print_summary(settings: Settings, console: Console) -> None:
    """What the chain left behind, read from the tables and files themselves."""
    from expectations.summary import summary_page
    from features.lake import Lake
    from training.registry import Registry
    from training.training import headline

    lake = Lake(settings)
    grid = Grid("table", "rows", "version", title="The lake", title_justify="left")
    for table in TABLES.values():
        rows = lake.rows(table)
        if rows is not None:
            grid.add_row(f"{table.layer}/{table.name}", str(rows), str(lake.version(table)))
    console.print(grid)

    registry = Registry(settings)
    model = registry.told(registry.champion())
    first = headline(model.scores)
    console.print(
        f"Model [bold]throughput[/bold] version {model.version}: {model.reason}. On {first['n']:.0f} "
        f"configurations it had not seen: median error {first['median_ape']:.2f}%, 90% of them within "
        f"{first['p90_ape']:.1f}%; the 90% interval covers {100 * first['coverage90']:.1f}%."
    )
    answers = settings.home / "answers" / _ANSWERS
    console.print(_samples_grid(answers))
    places = {
        "Data quality": summary_page(settings),
        "Answers": answers,
        "Book": settings.home / "book" / "index.html",
        "Logs": settings.home / "logs",
        "Ask on a page": "`.venv/bin/twin ui`; with Airflow and MLflow beside it: `.venv/bin/twin up`",
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
