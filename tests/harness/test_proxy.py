from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import time
from contextlib import asynccontextmanager

import pytest

from twin.harness.proxy import proxied

ANSWERING_S = 5.0


@asynccontextmanager
async def listening(answer):
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def echoing_proxy():
    async with listening(echo) as port, proxied("127.0.0.1", port) as proxy:
        yield proxy


async def connected(proxy):
    return await asyncio.open_connection("127.0.0.1", proxy.port)


async def round_trip(reader, writer, data=b"ping"):
    writer.write(data)
    await writer.drain()
    async with asyncio.timeout(ANSWERING_S):
        return await reader.readexactly(len(data))


async def ended(reader):
    async with asyncio.timeout(ANSWERING_S):
        try:
            return await reader.read() == b""
        except ConnectionResetError:
            return True


def test_bytes_pass_both_ways_unchanged():
    sent = os.urandom(8 * 2**20)

    async def run():
        async with echoing_proxy() as proxy:
            reader, writer = await connected(proxy)
            writer.write(sent)
            back, _ = await asyncio.gather(reader.readexactly(len(sent)), writer.drain())
            writer.close()
            return back

    assert hashlib.sha256(asyncio.run(run())).digest() == hashlib.sha256(sent).digest()


@pytest.mark.parametrize("delay", [0.0, 0.1])
def test_what_was_sent_before_the_end_arrives(delay):
    async def farewell(reader, writer):
        writer.write(b"x" * 3_000_000)
        writer.close()

    async def run():
        async with listening(farewell) as port, proxied("127.0.0.1", port) as proxy:
            proxy.delay = delay
            reader, writer = await connected(proxy)
            received = await reader.read()
            writer.close()
            return len(received)

    assert asyncio.run(run()) == 3_000_000


def test_a_cut_ends_every_connection_and_refuses_new_ones():
    async def run():
        async with echoing_proxy() as proxy:
            lines = [await connected(proxy) for _ in range(50)]
            for reader, writer in lines:
                await round_trip(reader, writer)
            assert proxy.connections == 50
            proxy.cut()
            assert proxy.connections == 0
            assert all([await ended(reader) for reader, _ in lines])
            for _ in range(20):
                with pytest.raises(ConnectionRefusedError):
                    await connected(proxy)

    asyncio.run(run())


def test_nobody_else_gets_the_port_of_a_network_that_is_cut():
    async def run():
        async with echoing_proxy() as proxy:
            proxy.cut()
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", proxy.port))

    asyncio.run(run())


def test_a_restored_network_is_the_old_one_and_may_fail_again():
    async def run():
        async with echoing_proxy() as proxy:
            port = proxy.port
            for _ in range(3):
                proxy.cut()
                await proxy.restore()
                assert proxy.port == port
                reader, writer = await connected(proxy)
                assert await round_trip(reader, writer) == b"ping"

    asyncio.run(run())


def test_a_connection_on_its_way_to_the_target_is_cut_as_well():
    async def run():
        # a target that lets nobody in, and whose queue of connections is full
        with socket.socket() as target:
            target.bind(("127.0.0.1", 0))
            target.listen(0)
            port = target.getsockname()[1]
            fillers = [socket.socket() for _ in range(4)]
            for one in fillers:
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", port))
            async with proxied("127.0.0.1", port) as proxy:
                reader, _ = await connected(proxy)
                await asyncio.sleep(0.05)
                proxy.cut()
                assert await ended(reader)
                assert proxy.connections == 0
            for one in fillers:
                one.close()

    asyncio.run(run())


def test_a_target_that_is_not_there_ends_the_connection():
    async def run():
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            async with proxied("127.0.0.1", nobody.getsockname()[1]) as proxy:
                reader, _ = await connected(proxy)
                assert await ended(reader)
                await asyncio.sleep(0)
                assert proxy.connections == 0

    asyncio.run(run())


def test_a_delay_holds_for_each_direction_and_can_change_while_it_runs():
    async def took(reader, writer):
        began = time.monotonic()
        assert await round_trip(reader, writer) == b"ping"
        return time.monotonic() - began

    async def run():
        async with echoing_proxy() as proxy:
            reader, writer = await connected(proxy)
            at_once = await took(reader, writer)
            proxy.delay = 0.15
            late = await took(reader, writer)
            proxy.delay = 0.0
            return at_once, late, await took(reader, writer)

    before, during, after = asyncio.run(run())
    assert during >= 0.3
    assert before < during / 2
    assert after < during / 2


def test_bytes_stay_in_order_when_a_delay_gets_shorter():
    async def run():
        async with echoing_proxy() as proxy:
            reader, writer = await connected(proxy)
            await round_trip(reader, writer)
            for number in range(20):
                proxy.delay = 0.2 - 0.01 * number
                writer.write(bytes([number]))
                await asyncio.sleep(0.005)
            return await reader.readexactly(20)

    assert asyncio.run(run()) == bytes(range(20))


@pytest.mark.parametrize("delay", [0.0, 30.0])
def test_a_sender_waits_for_a_receiver_that_does_not_read(delay):
    async def deaf(reader, writer):
        reader._transport.pause_reading()
        await asyncio.sleep(ANSWERING_S)

    async def run():
        taken = 0
        async with listening(deaf) as port, proxied("127.0.0.1", port) as proxy:
            proxy.delay = delay
            _, writer = await connected(proxy)
            piece = bytes(2**20)
            while taken < 200:
                writer.write(piece)
                try:
                    async with asyncio.timeout(0.5):
                        await writer.drain()
                except TimeoutError:
                    return taken
                taken += 1
        return taken

    # megabytes: buffers of the system and, with a delay, what may be late
    assert asyncio.run(run()) < 60


def test_a_closed_proxy_leaves_nothing_open():
    async def run():
        async with echoing_proxy() as proxy:
            reader, writer = await connected(proxy)
            await round_trip(reader, writer)
            port = proxy.port
        assert await ended(reader)
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        await asyncio.sleep(0.05)
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1
