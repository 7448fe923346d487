"""Sizing over 10,000 configurations beside a loop that asks for one at a time; and how long it takes from a
moved slider to the drawn curve. Prints JSON."""

from __future__ import annotations

import json
import statistics
import time
from random import Random

import pytest

from twin.app.answering import twin_of
from twin.app.costs import shipped_costs
from twin.app.describing import flat_example
from twin.app.examining import Wanted
from twin.app.sizing import size
from twin.core.configuration import Configuration
from twin.core.prediction import THROUGHPUT

from ..browsing import NoBrowser, launched, served

CASES = 20
ASKED_ALONE = 100
MOVES = 40
TEN = range(1, 11)
GRIDS = {
    "message_flow": {
        "cpus": TEN, "message_bytes": [256 * step for step in TEN], "instances": TEN, "execution_groups": TEN,
    },
    "rules_hub": {
        "cpus": TEN, "queue_managers": TEN, "rules_engines": range(1, 6),
        "message_bytes": [256 * step for step in TEN], "log_disk": ["fc_al", "cached"],
    },
    "fan_out": {
        "subscribers": range(1, 101), "message_bytes": [40 * step for step in range(1, 51)],
        "subscriber_queues": ["shared", "own"],
    },
    "topic_publish": {"cpus": TEN, "topic_subscribers": range(1, 101), "message_properties": range(10)},
    "generic": {
        "cpus": TEN, "clients": [2 * step for step in range(1, 51)],
        "demand_log_ms": [0.1 * step for step in range(20)],
    },
}  # fmt: skip
# families whose sliders are moved, and the field
SLIDERS = {"message_flow": "message_bytes", "rules_hub": "queue_managers", "fan_out": "subscribers"}


@pytest.mark.parametrize("family", GRIDS)
def test_a_grid_beside_a_loop(trained, family):
    twin, prices = twin_of(trained), shipped_costs().prices
    options = {name: list(values) for name, values in GRIDS[family].items()}
    flat = flat_example(family)
    base = Configuration.from_flat(flat)
    rate = twin.model.predict([base])[0].value
    draw, seconds, found = Random(7), [], 0
    # the first time loads what was compiled
    size(twin, base, Wanted(target=rate), {}, [1], prices)
    for _ in range(CASES):
        wanted = Wanted(
            target=rate * draw.uniform(0.3, 4),
            confidence=draw.uniform(0.5, 0.99),
            one_box_lost=draw.random() < 0.5,
        )
        started = time.perf_counter()
        sizing = size(twin, base, wanted, options, [2], prices)
        seconds.append(time.perf_counter() - started)
        found += bool(sizing.accepted)
        assert sizing.examined == 10_000
    started = time.perf_counter()
    for _ in range(ASKED_ALONE):
        some = flat | {name: draw.choice(values) for name, values in options.items()}
        twin.model.predict([Configuration.from_flat(some)], THROUGHPUT)
    alone = (time.perf_counter() - started) / ASKED_ALONE
    told = {
        "sizing": family,
        "options": 10_000,
        "cases": CASES,
        "cases_that_something_holds": found,
        "seconds_median": round(statistics.median(seconds), 2),
        "seconds_greatest": round(max(seconds), 2),
        "under_a_second": sum(one < 1 for one in seconds),
        "times_the_loop": round(10_000 * alone / statistics.median(seconds)),
    }
    print(json.dumps(told))


def test_from_a_moved_slider_to_the_drawn_curve(trained):
    try:
        with served(trained.home) as address, launched() as browser:
            for family, field in SLIDERS.items():
                print(json.dumps(_redraws(browser, address, family, field)))
    except NoBrowser as error:
        pytest.skip(str(error))


def _redraws(browser, address, family, field):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(address)
    page.locator("html[data-drawn]").wait_for(state="attached")
    page.locator("#family").select_option(family)
    slider = page.locator(f"#slide-{field}")
    slider.wait_for()
    time.sleep(2)
    page.evaluate("performance.clearMeasures('redraw')")
    for move in range(MOVES):
        drawn = page.locator("html").get_attribute("data-drawn")
        slider.press("ArrowRight" if move % 10 < 5 else "ArrowLeft")
        page.locator(f"html:not([data-drawn='{drawn}'])").wait_for(state="attached")
        time.sleep(0.4)
    times = page.evaluate("performance.getEntriesByName('redraw').map(one => one.duration)")
    page.close()
    return {
        "slider": f"{family}.{field}",
        "redraws": len(times),
        "median_ms": round(statistics.median(times), 1),
        "p90_ms": round(sorted(times)[int(0.9 * len(times))], 1),
        "greatest_ms": round(max(times), 1),
        "within_100_ms": sum(one <= 100 for one in times),
    }
