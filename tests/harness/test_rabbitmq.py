"""What only RabbitMQ tells or does."""

from __future__ import annotations

import asyncio
import traceback
from urllib.parse import urlsplit

import psutil
import pytest

from twin.harness.brokers.interface import BrokerProblem, Message, Queue
from twin.harness.brokers.processes import listening
from twin.harness.brokers.rabbitmq import RabbitMQ

pytestmark = pytest.mark.anyio

PATIENCE_S = 10.0


@pytest.fixture(scope="module")
def place(rabbitmq_place):
    return rabbitmq_place


async def next_of(consumer):
    async with asyncio.timeout(PATIENCE_S):
        return await consumer.get()


async def test_a_wrong_password_is_told_and_not_shown(place):
    there = urlsplit(place.address)
    wrong = there._replace(netloc=f"guest:hunter2@{there.hostname}:{there.port}").geturl()
    with pytest.raises(BrokerProblem, match="does not accept this user and password") as problem:
        await RabbitMQ.reached(wrong)
    assert "hunter2" not in "".join(traceback.format_exception(problem.value))


async def test_a_virtual_host_that_is_not_there_is_told(place):
    with pytest.raises(BrokerProblem, match="no such virtual host"):
        await RabbitMQ.reached(urlsplit(place.address)._replace(path="/elsewhere").geturl())


@pytest.mark.parametrize("address", ["http://guest:hunter2@127.0.0.1:5672", "amqp://:hunter2@", "hunter2",
                                     "amqp://guest:hunter2@127.0.0.1:567200"])  # fmt: skip
async def test_what_is_no_address_is_told_and_not_shown(address):
    with pytest.raises(BrokerProblem, match="amqp://user:password@host:5672/") as problem:
        await RabbitMQ.reached(address)
    assert "hunter2" not in str(problem.value)


async def test_to_put_where_no_queue_is_is_told_and_the_session_goes_on(connection, own_name):
    session, queue = await connection.session(), Queue(own_name)
    with pytest.raises(BrokerProblem, match=f"there is no queue {own_name}"):
        await session.put([Message(queue, b"1"), Message(queue, b"2")])
    await session.declare(queue)
    await session.put([Message(queue, b"3")])
    assert (await next_of(await session.consume(queue))).body == b"3"


async def test_a_refusal_ends_the_session_which_says_so_and_no_other(connection, own_name):
    session, other = await connection.session(), await connection.session()
    await session.declare(Queue(own_name))
    consumer = await session.consume(Queue(own_name))
    with pytest.raises(BrokerProblem, match="inequivalent arg 'durable'"):
        await session.declare(Queue(own_name, persistent=True))
    message = Message(Queue(own_name), b"")
    for call in (
        session.put([message]),
        session.send(message),
        session.declare(Queue(own_name)),
        consumer.get(),
    ):
        with pytest.raises(BrokerProblem, match="This session is over: open another"):
            await call
    await consumer.close()
    await other.put([message])


async def test_a_consumer_learns_that_its_queue_was_removed(connection, own_name):
    session = await connection.session()
    await session.declare(Queue(own_name))
    consumer = await session.consume(Queue(own_name))
    await (await connection.session()).remove(Queue(own_name))
    with pytest.raises(BrokerProblem, match=f"has the queue {own_name} no more"):
        await next_of(consumer)


async def test_who_is_done_speaks_for_no_other_consumer_of_the_session(broker, own_name):
    """A word about many messages is one about all older ones of the channel."""
    queues = Queue(own_name, True), Queue(f"{own_name}-2", True)
    first = await broker.connect()
    session = await first.session()
    await session.declare(*queues)
    older, newer = [await session.consume(queue) for queue in queues]
    await session.put([Message(queues[0], b"older")])
    await next_of(older)
    await session.put([Message(queues[1], b"newer"), Message(queues[1], b"newest")])
    await newer.done([await next_of(newer), await next_of(newer)])
    await first.close()
    second = await broker.connect()
    session = await second.session()
    assert (await next_of(await session.consume(queues[0]))).body == b"older"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await (await session.consume(queues[1])).get()
    await session.remove(*queues)
    await second.close()


async def test_a_consumer_that_closes_gives_back_what_it_holds(connection, own_name):
    session, queue = await connection.session(), Queue(own_name)
    await session.declare(queue)
    first = await session.consume(queue)
    await session.put([Message(queue, b"1"), Message(queue, b"2"), Message(queue, b"3")])
    await first.done([await next_of(first)])
    await next_of(first)
    await first.close()
    second = await session.consume(queue)
    assert [(await next_of(second)).body, (await next_of(second)).body] == [b"2", b"3"]


async def test_its_process_is_found_where_it_may_be_seen(broker):
    if not broker.process_ids:
        pytest.skip("its process is hidden from this user")
    assert {psutil.Process(pid).name() for pid in broker.process_ids} == {"beam.smp"}


@pytest.mark.parametrize(("host", "name"), [("192.0.2.1", "beam"), ("broker.example", "beam"),
                                            ("127.0.0.1", "another")])  # fmt: skip
async def test_no_process_is_taken_for_a_broker_that_is_elsewhere_or_another(place, host, name):
    assert listening(host, urlsplit(place.address).port, name) == ()
