"""Serving is well before it has loaded a model: who asks it waits until it can answer."""

from __future__ import annotations

import time

import httpx

_PATIENCE_S = 60.0


def until_served(url: str) -> None:
    ping, deadline = url.replace("/invocations", "/ping"), time.monotonic() + _PATIENCE_S
    while True:
        try:
            if httpx.get(ping, timeout=10, trust_env=False).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError as error:
            if time.monotonic() > deadline:
                raise AssertionError(f"nobody answers at {ping}") from error
        assert time.monotonic() < deadline, f"nothing is served at {ping}"
        time.sleep(0.2)
