"""What every broker of the harness does alike."""

from __future__ import annotations

import asyncio
import socket

import pytest

from twin.harness.brokers.interface import BrokerProblem, Message, NotOffered, Queue, Topic
from twin.harness.brokers.registry import reached

pytestmark = pytest.mark.anyio

# nothing comes after this time
SILENCE_S = 0.3
PATIENCE_S = 15.0
SCHEMES = {"nats": "nats", "rabbitmq": "amqp", "mqtt": "mqtt"}


@pytest.fixture
def persistent(place):
    """Where a broker has both kinds, the kind that keeps messages."""
    return place.broker != "mqtt"


@pytest.fixture
def keeps_messages(persistent):
    if not persistent:
        pytest.skip("Mosquitto does not force messages to disk")


async def next_of(consumer):
    async with asyncio.timeout(PATIENCE_S):
        return await consumer.get()


async def bodies_of(consumer, count):
    deliveries = [await next_of(consumer) for _ in range(count)]
    await consumer.done(deliveries)
    return [one.body for one in deliveries]


async def is_silent(consumer):
    try:
        async with asyncio.timeout(SILENCE_S):
            await consumer.get()
    except TimeoutError:
        return True
    return False


async def problem_of(call):
    """What is told, and soon."""
    task = asyncio.ensure_future(call)
    # not cancelled when it takes too long: a library may take that for the end of the connection
    await asyncio.wait([task], timeout=PATIENCE_S)
    assert task.done()
    with pytest.raises(BrokerProblem) as problem:
        await task
    return str(problem.value)


async def for_ever(call, *arguments):
    while True:
        await call(*arguments)
        # also where nothing has to be waited for
        await asyncio.sleep(0)


async def consumed(connection, queue, prefetch=1000):
    session = await connection.session()
    await session.declare(queue)
    return session, await session.consume(queue, prefetch)


async def test_a_message_comes_out_as_it_went_in(connection, own_name):
    queue = Queue(own_name)
    session, consumer = await consumed(connection, queue)
    for body, headers in ((bytes(range(256)), {"correlation": "a-1", "kind": "small"}), (b"", {})):
        await session.put([Message(queue, body, headers=headers)])
        delivery = await next_of(consumer)
        assert (delivery.body, dict(delivery.headers)) == (body, headers)
        await consumer.done([delivery])


async def test_a_large_message_comes_whole(connection, own_name, persistent):
    queue = Queue(own_name, persistent)
    session, consumer = await consumed(connection, queue)
    body = bytes(range(256)) * 2000
    await session.put([Message(queue, body)])
    assert await bodies_of(consumer, 1) == [body]


async def test_a_unit_of_work_arrives_in_order(connection, own_name):
    queue = Queue(own_name)
    session, consumer = await consumed(connection, queue)
    bodies = [b"%d" % number for number in range(50)]
    await session.put([Message(queue, body) for body in bodies])
    assert await bodies_of(consumer, 50) == bodies


async def test_a_persistent_unit_of_work_arrives_in_order(connection, own_name, keeps_messages):
    queue = Queue(own_name, persistent=True)
    session, consumer = await consumed(connection, queue)
    bodies = [b"%d" % number for number in range(50)]
    await session.put([Message(queue, body) for body in bodies])
    assert await bodies_of(consumer, 50) == bodies


async def test_a_unit_of_work_may_be_empty(connection):
    await (await connection.session()).put([])


async def test_what_was_sent_arrives_although_its_connection_closes(broker, connection, own_name):
    queue = Queue(own_name)
    _, consumer = await consumed(connection, queue)
    other = await broker.connect()
    session = await other.session()
    bodies = [b"%d" % number for number in range(200)]
    for body in bodies:
        await session.send(Message(queue, body))
    await other.close()
    assert await bodies_of(consumer, 200) == bodies


async def test_a_session_may_send_and_put_in_turn(connection, own_name, persistent):
    queue = Queue(own_name, persistent)
    session, consumer = await consumed(connection, queue)
    bodies = [b"%d" % number for number in range(30)]
    for number, body in enumerate(bodies):
        await (session.put([Message(queue, body)]) if number % 3 == 1 else session.send(Message(queue, body)))
    assert await bodies_of(consumer, 30) == bodies


async def test_a_session_takes_many_puts_at_once(connection, own_name, persistent):
    queue = Queue(own_name, persistent)
    session, consumer = await consumed(connection, queue)
    bodies = [b"%d" % number for number in range(200)]
    await asyncio.gather(*(session.put([Message(queue, body)]) for body in bodies))
    assert sorted(await bodies_of(consumer, 200)) == sorted(bodies)


async def test_a_put_that_is_cancelled_does_no_harm_to_others(connection, own_name, persistent):
    queue = Queue(own_name, persistent)
    session, consumer = await consumed(connection, queue)
    first = asyncio.create_task(session.put([Message(queue, b"1")]))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    await asyncio.gather(*(session.put([Message(queue, b"2")]) for _ in range(20)))
    # the first may have been on its way already
    assert (await bodies_of(consumer, 20))[-1] == b"2"


async def test_consumers_of_a_queue_share_its_messages(broker, connection, own_name):
    queue = Queue(own_name)
    session, first = await consumed(connection, queue)
    other = await broker.connect()
    second = await (await other.session()).consume(queue)
    bodies = [b"%d" % number for number in range(100)]
    shares = [[], []]

    async def take(consumer, share):
        while True:
            share += await bodies_of(consumer, 1)

    takers = [asyncio.create_task(take(*one)) for one in zip((first, second), shares, strict=True)]
    await session.put([Message(queue, body) for body in bodies])
    async with asyncio.timeout(PATIENCE_S):
        while len(shares[0] + shares[1]) < len(bodies):
            await asyncio.sleep(0.01)
    for taker in takers:
        taker.cancel()
    await other.close()
    assert sorted(shares[0] + shares[1]) == sorted(bodies)
    assert shares[0]
    assert shares[1]


@pytest.mark.parametrize("routing", ["topic", "content"])
@pytest.mark.parametrize("kept", [False, True], ids=["passing", "kept"])
async def test_a_publication_goes_to_every_subscriber_of_its_key(connection, own_name, kept, routing):
    topic = Topic(own_name, kept, routing)
    session = await connection.session()
    try:
        await session.declare(topic)
    except NotOffered as reason:
        pytest.skip(str(reason))
    alike = await session.subscribe(topic, "prices"), await session.subscribe(topic, "prices")
    other = await session.subscribe(topic, "weather")
    await session.put([Message(topic, b"1", "prices"), Message(topic, b"2", "prices", {"a": "b"})])
    for subscriber in alike:
        deliveries = [await next_of(subscriber), await next_of(subscriber)]
        assert [(one.body, dict(one.headers)) for one in deliveries] == [(b"1", {}), (b"2", {"a": "b"})]
        await subscriber.done(deliveries)
    assert await is_silent(other)
    for subscriber in (*alike, other):
        await subscriber.close()
    await session.put([Message(topic, b"nobody listens", "prices")])


async def test_a_consumer_holds_no_more_than_its_prefetch(connection, own_name, persistent):
    queue = Queue(own_name, persistent)
    session, consumer = await consumed(connection, queue, prefetch=1)
    bodies = [b"1", b"2", b"3"]
    await session.put([Message(queue, body) for body in bodies])
    for body in bodies:
        delivery = await next_of(consumer)
        assert delivery.body == body
        assert await is_silent(consumer)
        await consumer.done([delivery])


async def test_persistent_messages_survive_a_reconnection(broker, own_name, keeps_messages):
    queue = Queue(own_name, persistent=True)
    first = await broker.connect()
    session = await first.session()
    await session.declare(queue)
    await session.put([Message(queue, b"1"), Message(queue, b"2", headers={"a": "b"})])
    await first.close()
    second = await broker.connect()
    _, consumer = await consumed(second, queue)
    deliveries = [await next_of(consumer), await next_of(consumer)]
    assert [(one.body, dict(one.headers)) for one in deliveries] == [(b"1", {}), (b"2", {"a": "b"})]
    await consumer.done(deliveries)
    await second.close()


@pytest.mark.parametrize("kind", [Queue, Topic])
async def test_to_declare_again_is_fine_unless_with_other_options(connection, own_name, persistent, kind):
    session = await connection.session()
    await session.declare(kind(own_name, persistent))
    await session.declare(kind(own_name, persistent))
    assert own_name in await problem_of(session.declare(kind(own_name, not persistent)))


async def test_removing_leaves_nothing_behind(connection, own_name, keeps_messages):
    session = await connection.session()
    kept = Queue(f"{own_name}-queue", True), Topic(f"{own_name}-topic", True)
    await session.declare(*kept)
    await session.put([Message(kept[0], b"left")])
    await (await session.subscribe(kept[1], "key")).close()
    await session.remove(*kept)
    # what is there no more may come back with other options, and empty
    passing = Queue(kept[0].name), Topic(kept[1].name)
    await session.declare(*passing)
    assert await is_silent(await session.consume(passing[0]))
    await session.remove(*passing)


async def test_to_remove_what_is_not_there_is_no_problem(connection, own_name, persistent):
    await (await connection.session()).remove(Queue(own_name, persistent), Topic(own_name, persistent))


async def test_a_cut_connection_ends_who_waits_for_a_message(cable, own_name, persistent):
    queue = Queue(own_name, persistent)
    session, consumer = await consumed(await (await cable.place.reached()).connect(), queue)
    waiting = asyncio.create_task(consumer.get())
    await asyncio.sleep(0.05)
    cable.cut()
    assert "gone" in await problem_of(waiting)
    for call in (
        consumer.get(),
        session.put([Message(queue, b"")]),
        for_ever(session.send, Message(queue, b"")),
    ):
        assert "gone" in await problem_of(call)
    await consumer.close()


async def test_a_cut_connection_ends_who_puts(cable, own_name, persistent):
    queue = Queue(own_name, persistent)
    connection = await (await cable.place.reached()).connect()
    session, _ = await consumed(connection, queue)
    puts = [asyncio.create_task(for_ever(session.put, [Message(queue, bytes(1024))])) for _ in range(50)]
    await asyncio.sleep(0.1)
    cable.cut()
    for put in puts:
        assert "gone" in await problem_of(put)
    await connection.close()


async def test_a_cut_connection_ends_who_sends_more_than_the_broker_takes(cable, own_name, persistent):
    queue = Queue(own_name, persistent)
    session, _ = await consumed(await (await cable.place.reached()).connect(), queue)
    # so that much is under way
    cable.proxy.delay = 5.0
    sending = asyncio.create_task(for_ever(session.send, Message(queue, bytes(100_000))))
    await asyncio.sleep(0.3)
    cable.cut()
    assert "gone" in await problem_of(sending)


async def test_an_address_where_nobody_answers_is_told(place):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{unused.getsockname()[1]}"
        told = await problem_of(reached(place.broker, f"{SCHEMES[place.broker]}://{at}"))
    assert f"at {at}: start it or give another address" in told


async def test_something_else_at_an_address_is_told(place, nats_place):
    """NATS speaks first, and not what others expect."""
    at = nats_place.address.removeprefix("nats://")
    if place.broker == "nats":
        pytest.skip("NATS is what is there")
    assert at in await problem_of(reached(place.broker, f"{SCHEMES[place.broker]}://{at}"))


async def test_a_broker_tells_its_product_and_version(place, broker):
    assert broker.product == {"nats": "NATS", "rabbitmq": "RabbitMQ", "mqtt": "Mosquitto"}[place.broker]
    assert broker.version[0].isdigit()
