from __future__ import annotations

import asyncio
import socket
from dataclasses import replace

import psutil
import pytest

from twin.harness.brokers.interface import BrokerProblem, Delivery, Message, Queue
from twin.harness.brokers.nats import Nats
from twin.harness.brokers.nats_server import running_nats_server
from twin.harness.failures import NetworkCut, ServerKilled
from twin.harness.proxy import proxied
from twin.harness.reconnecting import Load
from twin.harness.recovering import Course, recover

CLIENTS = 200
LOAD = Load(clients=CLIENTS, offered_msgs_per_s=200, message_bytes=1024, retry_interval_s=0.5)
# tests run beside others, which may stop this one for a second or two
COURSE = Course(steady_s=2.5, settling_s=30.0, outage_s=2.5, patience_s=30.0)
# without a broker behind it
FEW = Load(clients=5, offered_msgs_per_s=100, message_bytes=64, consumers=2, retry_interval_s=0.1)
SHORT = Course(steady_s=2.0, outage_s=0.3, patience_s=3.0, draining_s=0.5)
RABBITMQ = ("127.0.0.1", 5672)


@pytest.fixture
def nats():
    before = {child.pid for child in psutil.Process().children()}
    with running_nats_server() as server:
        yield server
    assert {child.pid for child in psutil.Process().children()} <= before
    assert not server.folder.exists()


@pytest.fixture
def rabbitmq():
    module = pytest.importorskip("twin.harness.brokers.rabbitmq")
    try:
        socket.create_connection(RABBITMQ, 1).close()
    except OSError as error:
        pytest.skip(f"no RabbitMQ answers on {RABBITMQ[0]}:{RABBITMQ[1]}: {error}")
    return module.RabbitMQ


async def streams_of(server):
    import nats

    client = await nats.connect(server.address)
    try:
        return [one.config.name for one in await client.jetstream().streams_info()]
    finally:
        await client.close()


class TurningAway:
    """A broker and what fails it, for as long as it takes until a client was turned away: a busy machine may
    keep all of them waiting for longer than the outage."""

    def __init__(self, broker, failure):
        self._broker, self._failure = broker, failure
        self._turned_away = asyncio.Event()
        self.begin = failure.begin

    async def connect(self):
        try:
            return await self._broker.connect()
        except BrokerProblem:
            self._turned_away.set()
            raise

    async def end(self):
        async with asyncio.timeout(COURSE.patience_s):
            await self._turned_away.wait()
        await self._failure.end()


async def recovery_of(clients, hub, failure):
    turning_away = TurningAway(clients, failure)
    return await recover(turning_away, hub, turning_away, LOAD, COURSE)


def assert_all_came_back(found):
    assert len(found.reconnected_s) == CLIENTS
    assert found.reconnected_s == sorted(found.reconnected_s)
    assert found.reconnected_s[0] > 0
    # every client notices by its next message, not by a heartbeat of a minute
    assert 0 < found.channel_drop_s < 10 * CLIENTS / LOAD.offered_msgs_per_s
    assert found.channel_recovery_s == pytest.approx(found.reconnected_s[-1], abs=0.05)
    assert found.throughput_recovery_s >= found.channel_recovery_s
    assert found.failed_attempts > 0
    assert found.before_msgs_per_s == pytest.approx(LOAD.offered_msgs_per_s, rel=0.5)


def assert_nothing_is_lost(found):
    assert found.acknowledged > 3 * LOAD.offered_msgs_per_s
    assert (found.lost, found.some_lost, found.foreign) == (0, [], 0)
    assert found.received >= found.acknowledged


def assert_the_course_can_be_drawn(found):
    ends = [one["at_s"] for one in found.samples]
    assert ends == sorted(ends)
    threads = [one["threads"] for one in found.samples]
    assert threads[0] == threads[-1] == CLIENTS
    # a sample is a moment: on a busy machine one of the clients may not have noticed yet
    assert min(threads) <= CLIENTS // 100
    during = [one for one in found.samples if found.failed_at_s + 0.5 < one["at_s"] < found.restored_at_s]
    assert during
    assert all(one["messages"] == 0 for one in during)
    assert during[-1]["backlog_msgs"] > during[0]["backlog_msgs"]
    # it goes on growing while clients come back, on a busy machine for seconds
    assert found.samples[-1]["backlog_msgs"] < max(one["backlog_msgs"] for one in found.samples)


def test_all_clients_of_nats_come_back_after_a_cut_and_nothing_is_lost(nats):
    async def run():
        hub = await Nats.reached(nats.address)
        async with proxied("127.0.0.1", nats.port) as proxy:
            clients = await Nats.reached(f"nats://127.0.0.1:{proxy.port}")
            found = await recovery_of(clients, hub, NetworkCut(proxy))
        return found, await streams_of(nats)

    found, left = asyncio.run(run())
    assert_all_came_back(found)
    assert_nothing_is_lost(found)
    assert_the_course_can_be_drawn(found)
    assert left == []


def test_what_nats_acknowledged_is_there_after_it_was_killed(nats):
    async def run():
        killed = nats.process.pid
        broker = await Nats.reached(nats.address)
        found = await recovery_of(broker, broker, ServerKilled(nats))
        assert nats.process.pid != killed
        return found, await streams_of(nats)

    found, left = asyncio.run(run())
    assert_all_came_back(found)
    assert_nothing_is_lost(found)
    assert_the_course_can_be_drawn(found)
    assert left == []


def test_what_a_killed_nats_had_handed_out_is_handed_out_again(nats):
    queue = Queue("handed-out", persistent=True)

    async def run():
        broker = await Nats.reached(nats.address)
        session = await (await broker.connect()).session()
        await session.declare(queue)
        await session.put([Message(queue, b"once")])
        await (await session.consume(queue)).get()
        failure = ServerKilled(nats)
        await failure.begin()
        with pytest.raises(BrokerProblem):
            await broker.connect()
        await failure.end()
        connection = await broker.connect()
        session = await connection.session()
        async with asyncio.timeout(8):
            again = await (await session.consume(queue)).get()
        await session.remove(queue)
        await connection.close()
        return again.body

    assert asyncio.run(run()) == b"once"


def test_all_clients_of_rabbitmq_come_back_after_a_cut_and_nothing_is_lost(rabbitmq, monkeypatch):
    monkeypatch.setattr("twin.harness.recovering.secrets.token_hex", lambda _: "tested")

    async def run():
        hub = await rabbitmq.reached("amqp://guest:guest@{}:{}/".format(*RABBITMQ))
        async with proxied(*RABBITMQ) as proxy:
            clients = await rabbitmq.reached(f"amqp://guest:guest@127.0.0.1:{proxy.port}/")
            found = await recovery_of(clients, hub, NetworkCut(proxy))
        connection = await hub.connect()
        with pytest.raises(BrokerProblem, match="no queue"):
            await (await connection.session()).consume(Queue("twin-recovery-tested", persistent=True))
        await connection.close()
        return found

    found = asyncio.run(run())
    assert_all_came_back(found)
    assert_nothing_is_lost(found)
    assert_the_course_can_be_drawn(found)


class Memory:
    """A broker in this process, which may fail, forget and repeat itself."""

    name = product = "memory"
    version = "1"
    process_ids = ()

    def __init__(self, forgets=frozenset(), repeats=frozenset()):
        self.forgets, self.repeats = forgets, repeats
        self.up, self.stays_down = True, False
        self.bodies, self.puts, self.declared, self.lines = asyncio.Queue(), 0, set(), 0

    async def get(self):
        return await self.bodies.get()

    async def begin(self):
        self.up = False

    async def end(self):
        self.up = not self.stays_down

    async def connect(self):
        if not self.up:
            raise BrokerProblem("down")
        return Line(self)


class Line:
    """Its connection, session and consumer."""

    def __init__(self, broker):
        self.broker = broker
        broker.lines += 1

    async def session(self):
        return self

    async def close(self):
        self.broker.lines -= 1

    async def declare(self, *addresses):
        self.broker.declared |= set(addresses)

    async def remove(self, *addresses):
        self.broker.declared -= set(addresses)

    async def consume(self, queue, prefetch):
        return self

    async def put(self, messages):
        if not self.broker.up:
            raise BrokerProblem("gone")
        for message in messages:
            self.broker.puts += 1
            if self.broker.puts not in self.broker.forgets:
                self.broker.bodies.put_nowait(message.body)
            if self.broker.puts in self.broker.repeats:
                self.broker.bodies.put_nowait(message.body)

    async def get(self):
        return Delivery(await self.broker.get(), {})

    async def done(self, deliveries):
        pass


def recovered(course=SHORT, stays_down=False, **faults):
    async def run():
        broker = Memory(**faults)
        broker.stays_down = stays_down
        found = await recover(broker, broker, broker, FEW, course)
        assert len(asyncio.all_tasks()) == 1
        return found, broker

    return asyncio.run(run())


def test_a_message_that_was_acknowledged_and_forgotten_is_a_loss():
    found, _ = recovered(forgets={7, 8, 120})
    assert found.lost == 3
    assert found.received == found.acknowledged - 3
    # clients take turns, so the seventh message is the second of the second client
    assert (1, 1) in found.some_lost


def test_copies_are_counted_and_are_no_messages():
    found, _ = recovered(repeats={5, 6})
    assert (found.duplicated, found.lost) == (2, 0)
    assert found.received == found.acknowledged


def test_it_does_not_fail_before_what_a_pause_held_up_has_arrived():
    class Pausing(Memory):
        async def get(self):
            await asyncio.sleep(max(self.pause_ends - asyncio.get_running_loop().time(), 0))
            return await self.bodies.get()

    async def run():
        broker = Pausing()
        broker.pause_ends = asyncio.get_running_loop().time() + 0.9 * SHORT.steady_s
        return await recover(broker, broker, broker, FEW, SHORT)

    found = asyncio.run(run())
    assert found.failed_at_s > SHORT.steady_s + 0.5
    assert found.before_msgs_per_s == pytest.approx(FEW.offered_msgs_per_s, rel=0.1)
    assert found.throughput_recovery_s is not None


def test_a_load_that_is_never_held_is_failed_all_the_same():
    class Slow(Memory):
        async def get(self):
            await asyncio.sleep(0.05)
            return await self.bodies.get()

    async def run():
        broker = Slow()
        return await recover(
            broker, broker, broker, FEW, replace(SHORT, settling_s=0.5, patience_s=0.5, draining_s=0.2)
        )

    found = asyncio.run(run())
    assert SHORT.steady_s + 0.4 < found.failed_at_s
    assert 0 < found.before_msgs_per_s < 0.7 * FEW.offered_msgs_per_s


def test_who_does_not_come_back_in_time_is_not_said_to_have_come_back():
    found, _ = recovered(replace(SHORT, patience_s=0.6), stays_down=True)
    assert found.channel_drop_s is not None
    assert found.channel_recovery_s is None
    assert found.throughput_recovery_s is None
    assert found.reconnected_s == []
    assert found.failed_attempts > 0
    assert found.lost == 0


def test_the_queue_and_the_connections_are_gone_afterwards():
    _, broker = recovered()
    assert broker.declared == set()
    assert broker.lines == 0


def test_a_failure_that_cannot_be_ended_is_told_as_it_is():
    class Final(Memory):
        async def end(self):
            raise BrokerProblem("the server does not start any more")

    async def run():
        broker = Final()
        await recover(broker, broker, broker, FEW, SHORT)

    with pytest.raises(BrokerProblem, match="does not start"):
        asyncio.run(run())


def test_clients_that_cannot_be_connected_at_all_are_told():
    async def run():
        hub, clients = Memory(), Memory()
        clients.up = False
        try:
            await recover(clients, hub, hub, FEW, SHORT)
        finally:
            assert hub.declared == set()

    with pytest.raises(BrokerProblem, match="down"):
        asyncio.run(run())


def test_more_clients_than_files_may_be_open_are_refused():
    async def run():
        broker = Memory()
        await recover(broker, broker, broker, replace(FEW, clients=10**7), SHORT)

    with pytest.raises(BrokerProblem, match="ulimit"):
        asyncio.run(run())


@pytest.mark.parametrize(
    "wrong", [{"clients": 0}, {"offered_msgs_per_s": 0}, {"message_bytes": 4}, {"retry_jitter": 2}]
)
def test_a_load_that_makes_no_sense_is_told(wrong):
    with pytest.raises(ValueError, match=r"must be|at least|retry"):
        replace(LOAD, **wrong)
