"""What every broker of the harness does alike, and what each of them tells."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from twin.harness.brokers.interface import BrokerProblem, Consumer, Message, NotOffered, Queue, Session, Topic
from twin.harness.brokers.mqtt import Mqtt
from twin.harness.brokers.processes import listening
from twin.harness.brokers.rabbitmq import RabbitMQ
from twin.harness.brokers.registry import reached

pytestmark = pytest.mark.anyio

# nothing comes after this time
_SILENCE_S = 0.3
_PATIENCE_S = 10.0


@pytest.fixture
def persistent(place) -> bool:
    """Where a broker offers both, the one that keeps its promises on disk."""
    return place.broker != "mqtt"


@pytest.fixture
def lasting(place) -> None:
    if place.broker == "mqtt":
        pytest.skip("Mosquitto does not force messages to disk")


async def _next(consumer: Consumer):
    async with asyncio.timeout(_PATIENCE_S):
        return await consumer.get()


async def _bodies(consumer: Consumer, count: int) -> list[bytes]:
    deliveries = [await _next(consumer) for _ in range(count)]
    await consumer.done(deliveries)
    return [one.body for one in deliveries]


async def _is_silent(consumer: Consumer) -> bool:
    try:
        async with asyncio.timeout(_SILENCE_S):
            await consumer.get()
    except TimeoutError:
        return True
    return False


async def _taken(consumer: Consumer, into: list[bytes]) -> None:
    while True:
        delivery = await consumer.get()
        into.append(delivery.body)
        await consumer.done([delivery])


async def _problem(told) -> str:
    """What is told, and soon."""
    async with asyncio.timeout(_PATIENCE_S):
        with pytest.raises(BrokerProblem) as problem:
            await told
    return str(problem.value)


async def _declared(session: Session, address: Queue | Topic) -> Queue | Topic:
    await session.declare(address)
    return address


async def test_a_message_comes_out_as_it_went_in(connection, own_name):
    session = await connection.session()
    queue = Queue(own_name)
    await session.declare(queue)
    consumer = await session.consume(queue)
    for body, headers in ((bytes(range(256)), {"correlation": "a-1", "kind": "größer"}), (b"", {})):
        await session.put([Message(queue, body, headers=headers)])
        delivery = await _next(consumer)
        assert (delivery.body, dict(delivery.headers)) == (body, headers)
        await consumer.done([delivery])
    await consumer.close()
    await session.remove(queue)


async def test_a_message_larger_than_a_frame_comes_whole(connection, own_name, persistent):
    session = await connection.session()
    queue = Queue(own_name, persistent)
    await session.declare(queue)
    consumer = await session.consume(queue)
    body = bytes(range(256)) * 2000
    await session.put([Message(queue, body)])
    assert await _bodies(consumer, 1) == [body]
    await session.remove(queue)


@pytest.mark.parametrize("kept", [False, True])
async def test_a_unit_of_work_arrives_in_order(connection, own_name, kept, persistent):
    if kept and not persistent:
        pytest.skip("Mosquitto does not force messages to disk")
    session = await connection.session()
    queue = Queue(own_name, kept)
    await session.declare(queue)
    consumer = await session.consume(queue)
    bodies = [f"{number}".encode() for number in range(50)]
    await session.put([Message(queue, body) for body in bodies])
    assert await _bodies(consumer, 50) == bodies
    await consumer.close()
    await session.remove(queue)


async def test_a_unit_of_work_may_be_empty(connection):
    await (await connection.session()).put([])


async def test_what_is_sent_without_waiting_arrives_before_the_connection_closes(broker, connection, own_name):
    session, queue = await connection.session(), Queue(own_name)
    await session.declare(queue)
    consumer = await session.consume(queue)
    other = await broker.connect()
    sender = await other.session()
    for number in range(200):
        await sender.send(Message(queue, f"{number}".encode()))
    await other.close()
    assert await _bodies(consumer, 200) == [f"{number}".encode() for number in range(200)]
    await consumer.close()
    await session.remove(queue)


async def test_sending_and_putting_may_take_turns(connection, own_name, persistent):
    session, queue = await connection.session(), Queue(own_name, persistent)
    await session.declare(queue)
    consumer = await session.consume(queue)
    for number in range(30):
        message = Message(queue, f"{number}".encode())
        await (session.send(message) if number % 3 else session.put([message]))
    assert await _bodies(consumer, 30) == [f"{number}".encode() for number in range(30)]
    await consumer.close()
    await session.remove(queue)


async def test_many_programs_put_at_once_on_one_session(connection, own_name, persistent):
    session, queue = await connection.session(), Queue(own_name, persistent)
    await session.declare(queue)
    consumer = await session.consume(queue)
    bodies = [f"{number}".encode() for number in range(200)]
    await asyncio.gather(*(session.put([Message(queue, body)]) for body in bodies))
    assert sorted(await _bodies(consumer, 200)) == sorted(bodies)
    await session.remove(queue)


async def test_consumers_of_a_queue_share_its_messages(broker, connection, own_name):
    session, queue = await connection.session(), Queue(own_name)
    await session.declare(queue)
    other = await broker.connect()
    consumers = [await session.consume(queue), await (await other.session()).consume(queue)]
    shares: list[list[bytes]] = [[], []]
    takers = [
        asyncio.create_task(_taken(consumer, share)) for consumer, share in zip(consumers, shares, strict=True)
    ]
    bodies = [f"{number}".encode() for number in range(100)]
    await session.put([Message(queue, body) for body in bodies])
    async with asyncio.timeout(_PATIENCE_S):
        while sum(map(len, shares)) < len(bodies):
            await asyncio.sleep(0.01)
    for taker in takers:
        taker.cancel()
    assert sorted(shares[0] + shares[1]) == sorted(bodies)
    assert all(shares)
    for consumer in consumers:
        await consumer.close()
    await session.remove(queue)
    await other.close()


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("routing", ["topic", "content"])
async def test_a_publication_goes_to_every_subscriber_of_its_key(connection, own_name, kept, routing):
    session, topic = await connection.session(), Topic(own_name, kept, routing)
    try:
        await session.declare(topic)
    except NotOffered as reason:
        pytest.skip(str(reason))
    first, second = await session.subscribe(topic, "prices"), await session.subscribe(topic, "prices")
    other = await session.subscribe(topic, "weather")
    await session.put([Message(topic, b"1", "prices"), Message(topic, b"2", "prices", {"a": "b"})])
    for subscriber in (first, second):
        deliveries = [await _next(subscriber), await _next(subscriber)]
        assert [(one.body, dict(one.headers)) for one in deliveries] == [(b"1", {}), (b"2", {"a": "b"})]
        await subscriber.done(deliveries)
    assert await _is_silent(other)
    for subscriber in (first, second, other):
        await subscriber.close()
    await session.put([Message(topic, b"nobody listens", "prices")])
    await session.remove(topic)


async def test_a_consumer_holds_no_more_than_its_prefetch(connection, own_name, persistent):
    session, queue = await connection.session(), Queue(own_name, persistent)
    await session.declare(queue)
    consumer = await session.consume(queue, prefetch=1)
    await session.put([Message(queue, b"1"), Message(queue, b"2"), Message(queue, b"3")])
    for body in (b"1", b"2", b"3"):
        delivery = await _next(consumer)
        assert delivery.body == body
        assert await _is_silent(consumer)
        await consumer.done([delivery])
    await consumer.close()
    await session.remove(queue)


async def test_persistent_messages_survive_a_reconnection(broker, lasting, own_name):
    queue = Queue(own_name, persistent=True)
    first = await broker.connect()
    session = await first.session()
    await session.declare(queue)
    await session.put([Message(queue, b"1"), Message(queue, b"2", headers={"a": "b"})])
    await first.close()
    second = await broker.connect()
    session = await second.session()
    await session.declare(queue)
    consumer = await session.consume(queue)
    deliveries = [await _next(consumer), await _next(consumer)]
    assert [(one.body, dict(one.headers)) for one in deliveries] == [(b"1", {}), (b"2", {"a": "b"})]
    await consumer.done(deliveries)
    await consumer.close()
    await session.remove(queue)
    await second.close()


@pytest.mark.parametrize("kind", [Queue, Topic])
async def test_to_declare_again_is_fine_unless_with_other_options(broker, connection, own_name, persistent, kind):
    session = await connection.session()
    address = kind(own_name, persistent)
    await session.declare(address)
    await session.declare(address)
    told = await _problem(session.declare(kind(own_name, not persistent)))
    assert own_name in told
    # a session may be over then
    await (await connection.session()).remove(address)


async def test_what_is_not_offered_is_told_before_anything_is_done(place, connection, own_name):
    session = await connection.session()
    if place.broker == "rabbitmq":
        pytest.skip("RabbitMQ offers all of it")
    with pytest.raises(NotOffered, match="content"):
        await session.declare(Topic(own_name, routing="content"))


async def test_remove_leaves_nothing_behind(connection, own_name, lasting):
    session = await connection.session()
    addresses = (Queue(f"{own_name}-queue", True), Topic(f"{own_name}-topic", True))
    await session.declare(*addresses)
    await session.put([Message(addresses[0], b"left")])
    subscriber = await session.subscribe(addresses[1], "key")
    await subscriber.close()
    await session.remove(*addresses)
    # what is there no more may be made with other options, and is empty
    queue = Queue(addresses[0].name)
    await session.declare(queue, Topic(addresses[1].name))
    consumer = await session.consume(queue)
    assert await _is_silent(consumer)
    await consumer.close()
    await session.remove(queue, Topic(addresses[1].name))


async def test_to_remove_what_is_not_there_is_no_problem(connection, own_name, persistent):
    await (await connection.session()).remove(Queue(own_name, persistent), Topic(f"{own_name}-2", persistent))


async def test_a_cut_connection_ends_who_waits_for_a_message(cable, own_name, persistent):
    broker = await cable.place.reached()
    session, queue = await (await broker.connect()).session(), Queue(own_name, persistent)
    await session.declare(queue)
    consumer = await session.consume(queue)
    waiting = asyncio.create_task(consumer.get())
    await asyncio.sleep(0.05)
    cable.cut()
    assert "gone" in await _problem(waiting)
    assert "gone" in await _problem(consumer.get())
    assert "gone" in await _problem(session.put([Message(queue, b"")]))
    assert "gone" in await _problem(_sent_on_and_on(session, Message(queue, b"")))
    await consumer.close()
    await _removed(cable.to, queue)


async def test_a_cut_connection_ends_who_puts(cable, own_name, persistent):
    broker = await cable.place.reached()
    session, queue = await (await broker.connect()).session(), Queue(own_name, persistent)
    await session.declare(queue)
    puts = [asyncio.create_task(_put_on_and_on(session, Message(queue, bytes(1024)))) for _ in range(50)]
    await asyncio.sleep(0.1)
    cable.cut()
    for put in puts:
        assert "gone" in await _problem(put)
    await _removed(cable.to, queue)


async def test_a_cut_connection_ends_who_sends_faster_than_the_broker_takes(cable, own_name, persistent):
    broker = await cable.place.reached()
    session, queue = await (await broker.connect()).session(), Queue(own_name, persistent)
    await session.declare(queue)
    sending = asyncio.create_task(_sent_on_and_on(session, Message(queue, bytes(100_000))))
    await asyncio.sleep(0.1)
    cable.cut()
    assert "gone" in await _problem(sending)
    await _removed(cable.to, queue)


async def _put_on_and_on(session: Session, message: Message) -> None:
    while True:
        await session.put([message])


async def _sent_on_and_on(session: Session, message: Message) -> None:
    while True:
        await session.send(message)
        await asyncio.sleep(0)


async def _removed(place, *addresses) -> None:
    connection = await (await place.reached()).connect()
    await (await connection.session()).remove(*addresses)
    await connection.close()


async def test_nothing_at_an_address_is_told_with_the_address(place):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        told = await _problem(reached(place.broker, f"{_SCHEMES[place.broker]}://127.0.0.1:{port}"))
    assert f"127.0.0.1:{port}" in told
    assert "start it or give another address" in told


_SCHEMES = {"nats": "nats", "rabbitmq": "amqp", "mqtt": "mqtt"}


async def test_something_else_at_an_address_is_told(place, nats):
    """NATS speaks first, and not what the others expect."""
    if place.broker == "nats":
        pytest.skip("it is what it is")
    at = nats.address.removeprefix("nats://")
    assert at in await _problem(reached(place.broker, f"{_SCHEMES[place.broker]}://{at}"))


async def test_a_broker_tells_its_product_and_version(place, broker):
    assert broker.product == {"nats": "NATS", "rabbitmq": "RabbitMQ", "mqtt": "Mosquitto"}[place.broker]
    assert broker.version[0].isdigit()
