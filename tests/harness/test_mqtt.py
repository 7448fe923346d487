"""What only an MQTT broker tells or does, also with a Mosquitto of our own where its program is there."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
import socket
import subprocess
import time

import psutil
import pytest

from twin.harness.brokers.interface import BrokerProblem, Message, NotOffered, Queue, Topic
from twin.harness.brokers.mqtt import Mqtt

pytestmark = pytest.mark.anyio

PATIENCE_S = 10.0


@pytest.fixture(scope="module")
def place(mqtt_place):
    return mqtt_place


@pytest.fixture
def own_mosquitto(tmp_path):
    """Starts one with these settings and returns its port."""
    program = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("there is no mosquitto to start")
    started = []

    def start(*settings):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        file = tmp_path / "mosquitto.conf"
        file.write_text("\n".join((f"listener {port} 127.0.0.1", *settings, "")))
        started.append(subprocess.Popen([program, "-c", str(file)], stderr=subprocess.DEVNULL))
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return port
        pytest.fail("mosquitto does not answer")

    yield start
    for process in started:
        process.terminate()
        process.wait(PATIENCE_S)


async def test_a_wrong_password_is_told_and_not_shown(own_mosquitto):
    port = own_mosquitto("allow_anonymous false")
    with pytest.raises(BrokerProblem, match="does not accept this user and password") as problem:
        await Mqtt.reached(port=port, username="someone", password="hunter2")
    assert f"127.0.0.1:{port}" in str(problem.value)
    assert "hunter2" not in str(problem.value)


async def test_a_broker_that_keeps_its_version_to_itself_is_reached_all_the_same(own_mosquitto):
    broker = await Mqtt.reached(port=own_mosquitto("allow_anonymous true", "sys_interval 0"))
    assert (broker.product, broker.version) == ("Mosquitto", "unknown")


async def test_a_message_that_the_broker_does_not_take_is_told(own_mosquitto, tmp_path):
    rights = tmp_path / "rights"
    rights.write_text("topic read $SYS/#\n")
    port = own_mosquitto("allow_anonymous true", f"user {getpass.getuser()}", f"acl_file {rights}")
    connection = await (await Mqtt.reached(port=port)).connect()
    with pytest.raises(BrokerProblem, match="did not take a message: Not authorized"):
        await connection.put([Message(Queue("closed"), b"")])
    await connection.close()


async def test_nothing_is_persistent_or_routed_by_content_and_it_says_why(connection):
    session = await connection.session()
    queue, topic = Queue("some", persistent=True), Topic("some", routing="content")
    message = Message(queue, b"")
    for call in (
        session.declare(queue),
        session.put([message]),
        session.send(message),
        session.consume(queue),
    ):
        with pytest.raises(NotOffered, match="some: Mosquitto does not force each message to disk"):
            await call
    for call in (session.declare(topic), session.subscribe(topic, "key")):
        with pytest.raises(NotOffered, match="some: MQTT routes by topic only"):
            await call


async def test_a_unit_of_work_may_be_larger_than_what_the_broker_takes_at_once(connection, own_name):
    queue = Queue(own_name)
    consumer = await connection.consume(queue)
    bodies = [b"%d" % number for number in range(500)]
    await connection.put([Message(queue, body) for body in bodies])
    async with asyncio.timeout(PATIENCE_S):
        assert [(await consumer.get()).body for _ in bodies] == bodies


async def test_a_name_that_is_a_pattern_is_told(connection):
    with pytest.raises(BrokerProblem, match="every/#"):
        await connection.put([Message(Queue("every/#"), b"")])


async def test_its_process_is_found_where_it_may_be_seen(broker):
    if not broker.process_ids:
        pytest.skip("its process is hidden from this user")
    assert {psutil.Process(pid).name() for pid in broker.process_ids} == {"mosquitto"}
