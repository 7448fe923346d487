"""Takes the README's pictures from the home that `make run` left: the page, a chart of the book, the
quality page, and a curve. Run by `make pictures`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .browsing import launched, served

PROJECT = Path(__file__).parents[1]
HOME = PROJECT / ".twin"
PICTURES = PROJECT / "infra" / "pictures"
# sharp on screens with more pixels, and still small as files
SCALE = 1.5


@pytest.fixture(scope="module")
def browser():
    if not (HOME / "book" / "index.html").is_file():
        pytest.fail("there is no home to take pictures of: `make run` makes it")
    with launched() as browser:
        yield browser


@pytest.fixture
def picture(browser):
    pages = []

    def open_page(address, width, height):
        pages.append(browser.new_page(viewport={"width": width, "height": height}, device_scale_factor=SCALE))
        pages[-1].goto(address)
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


def test_the_page(picture):
    with served(HOME) as address:
        page = picture(address, 1280, 860)
        # a hub that was measured with more and more queue managers
        page.locator("#measured").fill("mqsi figure 9 queue managers 3 rules engines 1")
        page.locator("#measured-list [role=option]").first.click()
        page.locator("#along").select_option("queue_managers")
        page.locator("#advice li").first.wait_for()
        page.wait_for_timeout(1500)
        page.screenshot(path=PICTURES / "page.png")


def test_a_chart_of_the_book(picture):
    page = picture((HOME / "book" / "report-mqsi-v11-solaris.html").as_uri(), 1100, 800)
    chart = page.locator("figure.chart").first
    chart.scroll_into_view_if_needed()
    chart.locator(".main-svg").first.wait_for()
    page.wait_for_timeout(1000)
    chart.screenshot(path=PICTURES / "book.png")


def test_the_quality_page(picture):
    page = picture((HOME / "quality" / "index.html").as_uri(), 1100, 700)
    page.screenshot(path=PICTURES / "quality.png")


def test_a_curve(tmp_path):
    hub = tmp_path / "hub.yaml"
    hub.write_text(_twin("example", "rules_hub"))
    _twin("whatif", hub, "--vary", "queue_managers=1..8:8", "--chart", PICTURES / "whatif.png")


def _twin(*arguments):
    command = [sys.executable, "-m", "twin.app", *map(str, arguments)]
    home = os.environ | {"TWIN_HOME": str(HOME)}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=home).stdout
