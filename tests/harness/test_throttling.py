from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

import psutil
import pytest

from twin.harness.brokers.interface import Message, Queue
from twin.harness.brokers.nats import Nats
from twin.harness.brokers.nats_server import running_nats_server
from twin.harness.throttling import NotOurs, Throttled

ONE_TURN_S = 0.3
TURNS = 14
# not persistent: a disk that others use as well would vary more than the share
QUEUE = Queue("throttled")


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


async def puts_per_s(session):
    """One after the other, each waiting for its acknowledgement."""
    began, count = time.monotonic(), 0
    while (took := time.monotonic() - began) < ONE_TURN_S:
        await session.put([Message(QUEUE, bytes(1024))])
        count += 1
    return count / took


def test_a_throttled_server_loses_its_share_of_a_synchronous_load():
    async def run(server):
        broker = await Nats.reached(server.address)
        connection = await broker.connect()
        session = await connection.session()
        await session.declare(QUEUE)
        free, slowed = 0.0, 0.0
        # by turns: whatever else the machine does meets both
        for _ in range(TURNS):
            free += await puts_per_s(session)
            with Throttled(server.process.pid, 0.7):
                slowed += await puts_per_s(session)
        await session.remove(QUEUE)
        await connection.close()
        return slowed / free

    with running_nats_server() as server:
        share = asyncio.run(run(server))
    assert 0.5 < share < 0.88


def test_the_process_runs_afterwards_even_if_the_body_fails(sleeper):
    def body():
        with Throttled(sleeper.pid, 0.1):
            time.sleep(0.15)
            raise RuntimeError("planted")

    for _ in range(5):
        with pytest.raises(RuntimeError, match="planted"):
            body()
        assert psutil.Process(sleeper.pid).status() != psutil.STATUS_STOPPED


def test_it_is_stopped_most_of_the_time_where_the_share_is_small(sleeper):
    with Throttled(sleeper.pid, 0.1):
        seen = []
        for _ in range(40):
            time.sleep(0.017)
            seen.append(psutil.Process(sleeper.pid).status() == psutil.STATUS_STOPPED)
    assert sum(seen) > len(seen) / 2


def test_a_process_that_ends_meanwhile_is_no_problem(sleeper):
    with Throttled(sleeper.pid, 0.5):
        sleeper.kill()
        sleeper.wait()
        time.sleep(0.25)


def test_a_process_of_somebody_else_is_not_touched():
    with pytest.raises(NotOurs, match="not started here"):
        Throttled(os.getppid(), 0.5)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1])
def test_a_share_that_makes_no_sense_is_told(share):
    with pytest.raises(ValueError, match="of the time"):
        Throttled(os.getpid(), share)
