"""kill -9 of serving under load: who asks again gets the right answer, and nobody ever a wrong one."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter

import httpx
import pytest

from twin.app.local_mlflow import serving_service
from twin.app.services import free_port, kill_family, start

from ..asking_serving import until_served
from ..recording import record

SEED, KILLS, CLIENTS = 1013, 10, 4
_ASKED = 24
_LONGEST_BACK_S = 60.0


@pytest.fixture
def service(stages):
    """As the platform starts it, on a home with a champion."""
    settings = stages["predict"].put_back()
    return serving_service(settings, free_port(15_001))


@pytest.fixture
def questions(stages):
    lines = (stages["predict"].kept / "inbox" / "asked.jsonl").read_text().splitlines()
    asked = [json.loads(line) for line in lines[:_ASKED]]
    return [{name: float(one) if type(one) is int else one for name, one in row.items()} for row in asked]


def ask(url, question):
    reply = httpx.post(url, json={"dataframe_records": [question]}, timeout=20, trust_env=False)
    reply.raise_for_status()
    return reply.json()


def test_killed_under_load_it_comes_back_and_never_answers_wrong(service, questions):
    draw, counted, done = random.Random(SEED), Counter(), threading.Event()
    running = start(service)
    until_served(service.url)
    right = [ask(service.url, one) for one in questions]

    def client(number):
        for at in range(number, 1_000_000):
            while not done.is_set():
                try:
                    answer = ask(service.url, questions[at % _ASKED])
                except httpx.HTTPError:
                    counted.update(repeated=1)
                    time.sleep(0.1)
                    continue
                counted.update(answered=1, wrong=answer != right[at % _ASKED])
                break
            if done.is_set():
                return

    clients = [threading.Thread(target=client, args=(number,), daemon=True) for number in range(CLIENTS)]
    for one in clients:
        one.start()
    back = []
    try:
        for _ in range(KILLS):
            time.sleep(draw.uniform(0.5, 3))
            kill_family(running.id)
            running.process.wait()
            began, before = time.monotonic(), counted["answered"]
            running = start(service)
            while counted["answered"] == before:
                assert time.monotonic() - began < _LONGEST_BACK_S, service.log.read_text()[-2000:]
                time.sleep(0.05)
            back.append(time.monotonic() - began)
    finally:
        done.set()
        for one in clients:
            one.join(30)
        kill_family(running.id)
        running.process.wait()
    record(
        "serving",
        "make faults",
        "kill -9 of serving under load",
        {
            "kills": KILLS,
            "clients that ask without a pause": CLIENTS,
            "right answers": counted["answered"],
            "wrong answers": counted["wrong"],
            "tries that were repeated": counted["repeated"],
            "longest until the next answer, s": max(back),
        },
    )
    assert counted["answered"] > KILLS
    assert counted["wrong"] == 0
