from __future__ import annotations

import asyncio
import signal
import threading

import pytest

from twin.harness.brokers.interface import BrokerProblem
from twin.harness.interrupting import run_to_the_end


@pytest.fixture(autouse=True)
def usual_handler():
    """Spark puts its own there, and tests share a process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


async def told(number=signal.SIGINT):
    signal.raise_signal(number)
    await asyncio.sleep(5)


async def swallowed():
    """As a client library does whose answer comes in the moment of the cancellation."""
    try:
        await told()
    except asyncio.CancelledError:
        return "an answer"


async def taken_for_a_broken_connection():
    try:
        await told()
    except asyncio.CancelledError:
        raise BrokerProblem("gone") from None


@pytest.mark.parametrize("work", [told, swallowed, taken_for_a_broken_connection])
def test_an_interrupt_is_an_interrupt_whatever_becomes_of_it(work):
    with pytest.raises(KeyboardInterrupt):
        run_to_the_end(work())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_was_made_is_removed_before_it_ends():
    left = ["queue"]

    async def work():
        try:
            await told()
        finally:
            await asyncio.sleep(0.01)
            left.clear()

    with pytest.raises(KeyboardInterrupt):
        run_to_the_end(work())
    assert left == []


def test_a_second_interrupt_ends_the_tidying_up():
    async def work():
        try:
            await told()
        finally:
            await told()

    with pytest.raises(KeyboardInterrupt):
        run_to_the_end(work())


def test_without_one_it_gives_what_it_found_or_raises():
    async def found():
        return 3

    async def failed():
        raise BrokerProblem("gone")

    assert run_to_the_end(found()) == 3
    with pytest.raises(BrokerProblem, match="gone"):
        run_to_the_end(failed())


def test_in_a_thread_it_leaves_signals_alone():
    found = []

    async def work():
        found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=lambda: run_to_the_end(work()))
    thread.start()
    thread.join(5)
    assert found == [signal.default_int_handler]
