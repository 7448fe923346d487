"""Serving and page at a fixed rate for a quarter of an hour: nothing fails, and memory stays what it was."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import httpx
import psutil
import pytest
from hdrh.histogram import HdrHistogram

from twin.app.describing import flat_example
from twin.app.local_mlflow import serving_service
from twin.app.local_page import page_service
from twin.app.services import end, family, free_port, start, wait_until_healthy
from twin.core.settings import Settings

from ..asking_serving import until_served
from ..recording import PROJECT, record

# noted before a fixture moves tests to a home of their own
HOME = Path(os.environ.get("TWIN_HOME") or PROJECT / ".twin")
MINUTES = float(os.environ.get("SOAK_MINUTES", "15"))
# what both hold on two cores with as much to spare again
RATES = {"serving": 10.0, "page": 4.0}
# the first part of the time is for what grows once
WARM_UP = 1 / 3
MOST_GROWTH = 0.05
_FAMILIES = ("message_flow", "rules_hub", "fan_out")


@pytest.fixture
def services():
    settings = replace(
        Settings.from_environment(),
        home=HOME,
        lake_uri=(HOME / "lake").as_uri(),
        tracking_uri=f"sqlite:///{HOME / 'mlflow' / 'mlflow.db'}",
    )
    if not (HOME / "book" / "index.html").is_file():
        pytest.fail(f"there is nothing to serve in {HOME}: `make run` makes it")
    running = {
        "serving": start(serving_service(settings, free_port(15_001))),
        "page": start(page_service(settings, free_port(18_050))),
    }
    try:
        wait_until_healthy(list(running.values()))
        until_served(running["serving"].service.url)
        yield running
    finally:
        end(running.values())


def question(name, at):
    """Each is another one: what is remembered of an answer must not grow without bound either."""
    flat = flat_example(_FAMILIES[at % len(_FAMILIES)]) | {"message_bytes": 256 + at % 30_000}
    if name == "page":
        return "/api/curve", {"configuration": flat}
    whole = {field: float(one) if type(one) is int else one for field, one in flat.items()}
    return "/invocations", {"dataframe_records": [whole]}


class Load:
    """Requests at the moments of a clock, each timed from the moment at which it was due."""

    def __init__(self, url: str, name: str) -> None:
        self.url, self.name = url, name
        self.latencies, self.outcomes = HdrHistogram(1, 600_000_000, 3), Counter()

    async def run(self, client: httpx.AsyncClient, began: float, seconds: float) -> None:
        async with asyncio.TaskGroup() as tasks:
            for at in range(int(RATES[self.name] * seconds)):
                due = began + at / RATES[self.name]
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                tasks.create_task(self._ask(client, at, due))

    async def _ask(self, client: httpx.AsyncClient, at: int, due: float) -> None:
        path, body = question(self.name, at)
        try:
            status = (await client.post(self.url + path, json=body)).status_code
        except httpx.HTTPError as error:
            self.outcomes[type(error).__name__] += 1
            return
        self.outcomes[status] += 1
        self.latencies.record_value(int((time.monotonic() - due) * 1e6))

    def percentile_ms(self, share: float) -> float:
        return float(self.latencies.get_value_at_percentile(share) / 1e3)


async def watched(running, seconds):
    """Megabytes of each service every few seconds."""
    held = {name: [] for name in running}
    for _ in range(int(seconds / 5)):
        for name, one in running.items():
            with suppress(psutil.NoSuchProcess):
                held[name].append(sum(process.memory_info().rss for process in family(one.id)) / 1e6)
        await asyncio.sleep(5)
    return held


def growth(held):
    """From the middle third to the last, by their medians."""
    third = int(len(held) * WARM_UP)
    return statistics.median(held[2 * third :]) / statistics.median(held[third : 2 * third]) - 1


def test_a_fixed_rate_is_held_with_flat_memory(services):
    bases = {name: one.service.url.removesuffix("/invocations") for name, one in services.items()}
    loads = {name: Load(bases[name], name) for name in RATES}

    async def everything():
        limits = httpx.Limits(max_connections=100)
        async with httpx.AsyncClient(timeout=60, trust_env=False, limits=limits) as client:
            began = time.monotonic() + 1
            work = [one.run(client, began, MINUTES * 60) for one in loads.values()]
            return (await asyncio.gather(watched(services, MINUTES * 60), *work))[0]

    held = asyncio.run(everything())
    grown = {name: growth(one) for name, one in held.items()}
    figures = {"minutes": MINUTES}
    for name, one in loads.items():
        failed = one.outcomes.total() - one.outcomes[200]
        figures |= {
            f"{name}: requests a second": RATES[name],
            f"{name}: requests": one.outcomes.total(),
            f"{name}: failed": failed,
            f"{name}: median, ms": one.percentile_ms(50),
            f"{name}: 99th percentile, ms": one.percentile_ms(99),
            f"{name}: longest, ms": one.percentile_ms(100),
            f"{name}: memory in the end, MB": held[name][-1],
            f"{name}: growth from the middle third to the last, %": 100 * grown[name],
        }
    record("soak", "make soak", "Serving and page at a fixed rate", figures)
    outcomes = {name: one.outcomes for name, one in loads.items()}
    assert all(one.keys() == {200} for one in outcomes.values()), outcomes
    assert max(grown.values()) < MOST_GROWTH, held
