"""The page served by a process of its own, and the machine's own browser to look at it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
STARTS_IN_S = 180


class NoBrowser(Exception):
    """There is none on this machine."""


@contextmanager
def served(home):
    """`twin ui` on a home; gives its address."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AIRFLOW", "MLFLOW_TRACKING_URI"))
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "twin.app", "ui", "--port", "0"],
        env=inherited | {"TWIN_HOME": str(home), "COLUMNS": "200"},
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        said = server.stdout.readline()
        url = next(word for word in said.split() if word.startswith("http://"))
        _wait_for(f"{url}/health", server)
        yield url
    finally:
        server.terminate()
        server.wait(30)


@contextmanager
def launched():
    from playwright.sync_api import sync_playwright

    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        raise NoBrowser(f"none of {', '.join(BROWSERS)} is on this machine")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        browser.close()


def _wait_for(url, server):
    deadline = time.monotonic() + STARTS_IN_S
    while time.monotonic() < deadline:
        assert server.poll() is None, "the page's server ended"
        try:
            if httpx.get(url, timeout=5, trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.5)
    raise AssertionError("the page's server does not answer")
