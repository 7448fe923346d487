"""Flow workers end to end: processes of our own between the queues of a real broker."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import AsyncExitStack, asynccontextmanager, closing

import psutil
import psycopg
import pytest

from twin.core.workloads.live import LiveFlow
from twin.harness.brokers.interface import BrokerProblem, Delivery, Message, NotOffered, Queue
from twin.harness.brokers.nats_server import running_nats_server
from twin.harness.brokers.registry import Place
from twin.harness.flow.addresses import FlowAddresses, addresses_of
from twin.harness.flow.database import ROWS, Rows, prepared_database
from twin.harness.flow.formats import parse, sample, values_of
from twin.harness.flow.outputs import LABEL, PUBLISHED
from twin.harness.flow.plan import Plan
from twin.harness.flow.units import Outcome, keep_working
from twin.harness.flow.workers import Workers

MESSAGES = 200
# a slow machine under load
PATIENCE_S = 60


@pytest.fixture(scope="module")
def nats():
    with running_nats_server() as server:
        yield Place("nats", server.address)


def flow(**columns):
    return LiveFlow(**{"node": "trivial", "message_bytes": 1024, "persistent": False} | columns)


def prefix():
    return f"twin-{uuid.uuid4().hex[:8]}"


@asynccontextmanager
async def declared(plan):
    """Sessions on each broker of a flow whose queues are there."""
    async with AsyncExitStack() as held:
        sessions = []
        for at, place in enumerate(plan.places):
            connection = await (await place.reached()).connect()
            held.push_async_callback(connection.close)
            session = await connection.session()
            addresses = addresses_of(plan.flow, plan.prefix, at)
            await session.declare(*addresses)
            held.push_async_callback(session.remove, *addresses)
            sessions.append(session)
        yield sessions


def bodies_of(workload):
    return [sample(workload.input_format, workload.message_bytes, number) for number in range(MESSAGES)]


async def received(consumer, messages=MESSAGES):
    async with asyncio.timeout(PATIENCE_S):
        found = []
        for _ in range(messages):
            delivery = await consumer.get()
            await consumer.done([delivery])
            found.append(delivery)
    return found


async def sent(session, plan, bodies):
    inputs = FlowAddresses.of(plan.flow, plan.prefix).inputs
    await session.put(
        [
            Message(inputs[at % len(inputs)], body, headers={"number": str(at)})
            for at, body in enumerate(bodies)
        ]
    )


async def _through(plan, bodies):
    async with declared(plan) as sessions:
        consumer = await sessions[-1].consume(FlowAddresses.of(plan.flow, plan.prefix).output)
        async with Workers(plan) as workers:
            ids = workers.process_ids
            assert len(ids) == plan.flow.queues * plan.flow.execution_groups
            await sent(sessions[0], plan, bodies)
            found = await received(consumer)
            assert workers.problem() is None
        assert not any(psutil.pid_exists(one) for one in ids)
    assert len({one.headers["number"] for one in found}) == len(bodies)
    return sorted(found, key=lambda one: int(one.headers["number"]))


def through(workload, *places, database=None):
    """What comes out of a flow when the samples are put in, in the order in which they went in."""
    return asyncio.run(_through(Plan(workload, prefix(), places, database), bodies_of(workload)))


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"persistent": True},
        {"persistent": True, "messages_per_commit": 5},
        {"messages_per_commit": 50, "instances": 2},
        {"persistent": True, "instances": 2, "execution_groups": 2, "messages_per_commit": 3},
        {"queues": 2, "execution_groups": 2},
        {"node": "aggregation"},
        {"node": "aggregation", "persistent": True, "instances": 2, "messages_per_commit": 7},
    ],
    ids=str,
)
def test_every_message_comes_out_once_as_it_went_in(nats, columns):
    workload = flow(**columns)
    assert [one.body for one in through(workload, nats)] == bodies_of(workload)


def test_messages_are_converted_on_their_way(nats):
    workload = flow(
        node="compute", esql="convert", compute_nodes=1, input_format="generic_xml", output_format="mrm_tds"
    )
    for came, went in zip(through(workload, nats), bodies_of(workload), strict=True):
        assert values_of(parse("mrm_tds", came.body)) == values_of(parse("generic_xml", went))


def test_messages_take_their_labels(nats):
    workload = flow(node="route_to_label", destinations=10, input_format="mrm_cwf")
    labels = [one.headers[LABEL] for one in through(workload, nats)]
    assert labels == [f"label-{at % 10}" for at in range(MESSAGES)]


def test_a_flow_takes_from_one_broker_and_puts_to_another(nats):
    workload = flow(brokers=2, persistent=True, messages_per_commit=20)
    with running_nats_server() as other:
        found = through(workload, nats, Place("nats", other.address))
    assert [one.body for one in found] == bodies_of(workload)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_instances_share_a_database(nats, kind, tmp_path):
    where = "host=127.0.0.1 user=postgres dbname=test connect_timeout=2"
    if kind == "postgresql":
        try:
            psycopg.connect(where).close()
        except psycopg.OperationalError as error:
            pytest.skip(f"PostgreSQL is not reachable on this machine: {error}")
    workload = flow(
        node="database", database_operation="update", database=kind, instances=2, execution_groups=2
    )
    with prepared_database(kind, str(tmp_path) if kind == "sqlite" else where) as place:
        assert len(through(workload, nats, database=place)) == MESSAGES
        with closing(Rows(place)) as rows:
            assert (rows.count(), rows.changes()) == (ROWS, MESSAGES)


@pytest.mark.parametrize("persistent", [False, True])
def test_subscribers_of_a_topic_all_get_what_a_flow_publishes(nats, persistent):
    plan = Plan(flow(routing="topic", subscribers=3, persistent=persistent), prefix(), [nats])

    async def published():
        async with declared(plan) as (session,):
            topic = FlowAddresses.of(plan.flow, plan.prefix).topic
            subscribers = [await session.subscribe(topic, PUBLISHED) for _ in range(3)]
            async with Workers(plan):
                await sent(session, plan, bodies_of(plan.flow))
                return [await received(one) for one in subscribers]

    for found in asyncio.run(published()):
        assert [one.body for one in found] == bodies_of(plan.flow)


def test_content_decides_which_subscribers_get_a_message(nats):
    plan = Plan(flow(routing="content", subscribers=2, input_format="mrm_tds"), prefix(), [nats])
    rich = sample("mrm_tds", 500)
    # the limits are 500 and 1000
    poor = rich.replace(b"|03:1001.25|", b"|03:700.0|")

    async def published():
        async with declared(plan) as (session,):
            queues = FlowAddresses.of(plan.flow, plan.prefix).subscribers
            low, high = [await session.consume(one) for one in queues]
            async with Workers(plan):
                await sent(session, plan, [poor, rich, poor, rich])
                return await received(low, 4), await received(high, 2)

    low, high = asyncio.run(published())
    assert [one.body for one in low] == [poor, rich, poor, rich]
    assert [one.body for one in high] == [rich, rich]


@pytest.fixture
def rabbitmq():
    place = Place("rabbitmq", "amqp://guest:guest@127.0.0.1:5672/")
    try:
        asyncio.run(place.reached())
    except BrokerProblem as problem:
        pytest.skip(str(problem))
    return place


def test_rabbitmq_carries_a_flow_too(rabbitmq):
    workload = flow(node="aggregation", persistent=True, messages_per_commit=5, instances=2)
    assert [one.body for one in through(workload, rabbitmq)] == bodies_of(workload)


def test_what_a_stopped_worker_had_not_finished_goes_to_the_next(rabbitmq):
    plan = Plan(flow(persistent=True, messages_per_commit=5), prefix(), [rabbitmq])

    async def stopped_in_between():
        async with declared(plan) as (session,):
            consumer = await session.consume(FlowAddresses.of(plan.flow, plan.prefix).output)
            await sent(session, plan, bodies_of(plan.flow))
            async with Workers(plan):
                found = await received(consumer, 20)
            async with Workers(plan):
                numbers = {one.headers["number"] for one in found}
                while len(numbers) < MESSAGES:
                    # some may come twice
                    numbers |= {one.headers["number"] for one in await received(consumer, 1)}
        return numbers

    assert len(asyncio.run(stopped_in_between())) == MESSAGES


def until(holds):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("did not happen in time")


def test_a_broker_that_goes_away_is_told_and_ends_the_worker():
    with running_nats_server() as server:
        workers = Workers(Plan(flow(), prefix(), [Place("nats", server.address)]))
        with workers:
            assert workers.problem() is None
            server.kill()
            until(workers.problem)
            assert "the connection to NATS is gone" in workers.problem()
            assert workers.process_ids == []
        assert "the connection to NATS is gone" in workers.problem()


def test_a_broker_that_is_not_there_is_told_before_anything_starts():
    workers = Workers(Plan(flow(execution_groups=2), prefix(), [Place("rabbitmq", "amqp://127.0.0.1:1/")]))
    with pytest.raises(BrokerProblem, match=r"RabbitMQ does not answer at 127\.0\.0\.1:1"):
        workers.__enter__()
    assert workers.process_ids == []


def test_a_message_that_cannot_be_read_is_told(nats):
    plan = Plan(flow(node="filter", input_format="mrm_cwf"), prefix(), [nats])

    async def told():
        async with declared(plan) as (session,), Workers(plan) as workers:
            await sent(session, plan, [b"short"])
            await asyncio.to_thread(until, workers.problem)
            return workers.problem()

    assert "a message of 5 bytes is not mrm_cwf" in asyncio.run(told())


def test_a_flow_that_is_not_offered_starts_nothing(nats):
    with pytest.raises(NotOffered, match="not through more"):
        Workers(Plan(flow(brokers=3), prefix(), [nats] * 3))
    with pytest.raises(BrokerProblem, match="2 brokers are to be used, and 1 are told"):
        Workers(Plan(flow(brokers=2), prefix(), [nats]))


def test_a_killed_worker_is_told(nats):
    with Workers(Plan(flow(), prefix(), [nats])) as workers:
        (process_id,) = workers.process_ids
        os.kill(process_id, signal.SIGKILL)
        until(workers.problem)
        assert workers.problem() == "a flow worker ended with code -9 and said nothing"


def test_workers_end_quickly_when_asked_to(nats):
    workers = Workers(Plan(flow(instances=3, execution_groups=2), prefix(), [nats]))
    with workers:
        ids = workers.process_ids
        # the terminal's Ctrl-C goes to a session, and theirs is another
        assert all(os.getsid(one) == one for one in ids)
        before = time.monotonic()
    # waiting for one that does not listen takes longer
    assert time.monotonic() - before < 4
    assert not any(psutil.pid_exists(one) for one in ids)
    assert workers.problem() is None


def test_workers_end_when_whoever_started_them_is_killed(nats):
    plan = Plan(flow(execution_groups=2), prefix(), [nats])
    code = (
        "import sys, time\n"
        "from twin.harness.flow.plan import Plan\n"
        "from twin.harness.flow.workers import Workers\n"
        "with Workers(Plan.of_text(sys.argv[1])) as workers:\n"
        "    print(*workers.process_ids, flush=True)\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, plan.as_text()], stdout=subprocess.PIPE) as parent:
        ids = [int(one) for one in parent.stdout.readline().split()]
        assert len(ids) == 2
        assert all(psutil.pid_exists(one) for one in ids)
        parent.kill()
    until(lambda: not any(psutil.pid_exists(one) for one in ids))


class Arriving:
    """A consumer that has some messages now and gets others later."""

    def __init__(self, *numbers):
        self.waiting = asyncio.Queue()
        self.add(*numbers)
        self.units = []

    def add(self, *numbers):
        for number in numbers:
            self.waiting.put_nowait(Delivery(str(number).encode(), {}))

    async def get(self):
        return await self.waiting.get()

    async def done(self, deliveries):
        self.units.append([int(one.body) for one in deliveries])


class Putting:
    def __init__(self):
        self.puts = []

    async def put(self, messages):
        self.puts.append(len(messages))
        await asyncio.sleep(0)


def test_a_unit_of_work_takes_what_is_there_and_does_not_wait_for_more():
    async def worked():
        consumer, session = Arriving(1, 2, 3, 4, 5), Putting()

        def copy(deliveries):
            return Outcome([Message(Queue("out"), one.body) for one in deliveries], deliveries)

        task = asyncio.create_task(keep_working(consumer, session, copy, 3))
        await asyncio.sleep(0.05)
        assert consumer.units == [[1, 2, 3], [4, 5]]
        consumer.add(6)
        await asyncio.sleep(0.05)
        consumer.add(7, 8, 9, 10)
        await asyncio.sleep(0.05)
        assert consumer.units[2:] == [[6], [7, 8, 9], [10]]
        assert session.puts == [3, 2, 1, 3, 1]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [
            one for one in asyncio.all_tasks() if one is not asyncio.current_task() and not one.cancelling()
        ] == []

    asyncio.run(worked())


def test_what_could_not_be_put_is_not_done_with():
    class Refusing:
        async def put(self, messages):
            raise BrokerProblem("no room")

    async def worked():
        consumer = Arriving(1)
        with pytest.raises(BrokerProblem, match="no room"):
            await keep_working(
                consumer, Refusing(), lambda taken: Outcome([Message(Queue("out"), b"")], taken), 1
            )
        assert consumer.units == []

    asyncio.run(worked())
