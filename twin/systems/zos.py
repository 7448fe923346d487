"""WebSphere MQ on z/OS: costs of calls, storage of objects, client channels, consumption, restart.

The report prints processor time and storage. A rate follows from the processors: applications that call,
a server application that answers one message at a time, clients behind a network.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from twin.core.columns import ABSENT, Texts
from twin.queueing.network import Array, Flags, Network, cpu, delay, pipe
from twin.systems import zos_calls, zos_channels, zos_storage
from twin.systems.model import Batch, Demands, Evaluation, Refusal, System, Target
from twin.systems.standard import evaluated
from twin.systems.zos_calls import Publishing, old_version

_US_PER_S = 1e6
# a rate of those that load the machine; the others define or start something
_RUNNING = ("topic_publish", "consume", "client_channel")
# wmq-v7-zos line 778 tells the cost of selecting on the first property, and on the first two
_EARLY_PROPERTIES = 2


def _evaluate(batch: Batch, demands: Demands) -> Evaluation:
    calls = zos_calls.publishing(batch, demands)
    metrics = (
        _publish_metrics(batch, calls)
        | _subscribe_metrics(batch, demands)
        | _channel_metrics(batch, demands)
        | _of(batch, "stored_object", zos_storage.storage(batch, demands))
        | _of(batch, "restart", {"restart_cpu_s": zos_calls.restarting_s(batch, demands)})
    )
    ran = evaluated(_network(batch, demands, calls), batch)
    running = batch.is_("family", *_RUNNING) & ~batch.flag("ssl") & ~_without_size(batch)
    rates = {name: np.where(running, values, np.nan) for name, values in ran.metrics.items()}
    megabytes = rates["throughput_msgs_per_s"] * zos_channels.network_bytes(batch) / 1e6
    rates |= _of(batch, "client_channel", {"data_rate_mb_per_s": megabytes})
    return Evaluation(metrics | rates, ran.solution if running.any() else None)


def _network(batch: Batch, demands: Demands, calls: Publishing) -> Network:
    """Publishers enough for all processors, one server application, the threads of a client.
    Definitions and starts load nothing: they stand beside."""
    publish, consume, client = (batch.is_("family", one) for one in _RUNNING)
    cpu_us = np.select(
        [publish, consume, client],
        [
            # a publication is over when its subscribers have got it
            calls.total / batch.number("messages"),
            zos_calls.consuming_us(batch, demands),
            zos_channels.transfer_us(batch, demands),
        ],
        0.0,
    )
    sent_bytes = np.where(client, zos_channels.network_bytes(batch), 0.0)
    # what stands beside passes its time without loading anything
    waits_us = np.select(
        [publish | client, consume], [0.0, batch.cpu_ratio * demands["server_wait_us"]], _US_PER_S
    )
    stations = [
        cpu(cpu_us / _US_PER_S, batch.number("cpus")),
        pipe(sent_bytes, zos_channels.network_bytes_per_s(batch)),
        delay("waits", waits_us / _US_PER_S),
    ]
    population = np.select([publish, client], [batch.number("cpus"), batch.number("client_threads")], 1.0)
    return Network(stations, population, "applications")


def _publish_metrics(batch: Batch, calls: Publishing) -> dict[str, Array]:
    total, subscribers = calls.total, batch.number("topic_subscribers")
    costs = {
        "mqsetmp_us": calls.set_properties,
        "mqput_us": calls.put,
        "mqput_increase_us": calls.further_selectors,
        "mqget_us": calls.get,
        "publication_us": total,
        "publication_us_per_subscriber": total / np.where(subscribers > 0, subscribers, np.nan),
    }
    # a call that is not made has no cost to compare
    return _of(
        batch, "topic_publish", {name: np.where(cost > 0, cost, np.nan) for name, cost in costs.items()}
    )


def _subscribe_metrics(batch: Batch, demands: Demands) -> dict[str, Array]:
    subscribing_us = zos_calls.subscribing_us(batch, demands)
    # a managed subscription brings its queue
    create_us = np.where(batch.number("managed") == 0, batch.cpu_ratio * demands["queue_create_us"], np.nan)
    return _of(
        batch, "subscribe", {"mqsub_us": subscribing_us, "mqsub_with_queue_us": subscribing_us + create_us}
    )


def _channel_metrics(batch: Batch, demands: Demands) -> dict[str, Array]:
    memory_kb = zos_channels.channel_memory_kb(batch, demands)
    return _of(
        batch,
        "client_channel",
        {
            "channel_memory_kb": memory_kb,
            "memory_per_client_kb": memory_kb / zos_channels.conversations(batch),
            "clients": zos_channels.most_clients(batch, memory_kb),
            "channel_instances": zos_channels.channel_instances(batch),
        },
    )


def _of(batch: Batch, family: str, metrics: dict[str, Array]) -> dict[str, Array]:
    mine = batch.is_("family", family)
    return {name: np.where(mine, values, np.nan) for name, values in metrics.items()}


def _without_size(batch: Batch) -> Flags:
    """Memory of an old channel is told for any message, its rate is not."""
    return np.isnan(batch.number("message_bytes"))


def _released(batch: Batch, release: str) -> Flags:
    labels, codes = batch.labels("version")
    found: Flags = np.array([label.startswith(release) for label in labels], dtype=bool)[codes]
    return found


def _of_family(family: str, where: Callable[[Batch], Flags]) -> Callable[[Batch], Flags]:
    return lambda batch: batch.is_("family", family) & where(batch)


def _untold(column: str) -> Callable[[Batch], Flags]:
    return lambda batch: np.isnan(batch.number(column))


def _new_and_untold(column: str) -> Callable[[Batch], Flags]:
    return lambda batch: ~old_version(batch) & np.isnan(batch.number(column))


def _properties_without_format(batch: Batch) -> Flags:
    return (
        batch.is_("object_kind", "message")
        & (batch.number("message_properties") > 0)
        & batch.is_("property_format", ABSENT)
    )


_REFUSALS = (
    Refusal(
        "version: only 6.0 and 7.0 were measured, not {version}",
        lambda batch: ~old_version(batch) & ~_released(batch, "7"),
    ),
    Refusal(
        "persistent: only non-persistent messages were measured on z/OS",
        lambda batch: batch.flag("persistent"),
    ),
    Refusal(
        "version: 6.0 has no topics and subscriptions on z/OS",
        lambda batch: batch.is_("family", "topic_publish", "subscribe") & old_version(batch),
    ),
    Refusal(
        "wanted_messages: {wanted_messages} of {messages} messages",
        lambda batch: batch.number("wanted_messages") > batch.number("messages"),
    ),
    Refusal(
        "message_properties: selectors need properties to look at",
        lambda batch: (batch.number("selectors") > 0) & (batch.number("message_properties") == 0),
    ),
    Refusal(
        "selected_property: the cost of a late property is not printed, only of the first two",
        lambda batch: batch.number("selected_property") > _EARLY_PROPERTIES,
    ),
    Refusal(
        "busy_queues: {busy_queues} of {queues} queues",
        lambda batch: batch.number("busy_queues") > batch.number("queues"),
    ),
    Refusal("version: consumption was measured on 7.0", _of_family("consume", old_version)),
    Refusal(
        "version: 6.0 neither shares conversations nor puts or reads asynchronously",
        lambda batch: (
            old_version(batch)
            & ((batch.number("sharecnv") > 0) | batch.flag("asynchronous_put") | batch.flag("read_ahead"))
        ),
    ),
    *(
        Refusal(
            f"{column}: memory and rate depend on it",
            _of_family("client_channel", _new_and_untold(column)),
        )
        for column in ("sharecnv", "message_bytes")
    ),
    Refusal(
        "read_ahead: not available with SHARECNV(0)",
        lambda batch: batch.flag("read_ahead") & (batch.number("sharecnv") == 0),
    ),
    Refusal(
        "version: 6.0 has no topics, subscriptions and properties on z/OS",
        _of_family("stored_object", lambda batch: old_version(batch) & ~batch.is_("object_kind", "queue")),
    ),
    Refusal(
        "name_bytes: storage depends on the length of the string",
        lambda batch: batch.is_("object_kind", "topic", "subscription") & _untold("name_bytes")(batch),
    ),
    Refusal(
        "page_set: single page sets were counted for queues alone",
        lambda batch: ~_untold("page_set")(batch) & ~batch.is_("object_kind", "queue"),
    ),
    Refusal(
        "page_set: the measured queue manager has page sets 0 to 4",
        lambda batch: batch.number("page_set") >= zos_storage.PRINTED["page_sets"],
    ),
    Refusal(
        "message_bytes: the buffer depends on it",
        lambda batch: batch.is_("object_kind", "message") & _untold("message_bytes")(batch),
    ),
    Refusal(
        "property_format: the buffer depends on how properties are passed on", _properties_without_format
    ),
    Refusal("buffers: the number of buffers is needed", _of_family("restart", _untold("buffers"))),
)


def _regimes(batch: Batch) -> Texts:
    labels, codes = batch.labels("family", "object_kind", "sharecnv")
    parts = []
    for label in labels:
        family, kind, sharecnv = label.split("/")
        shared = "version 6" if sharecnv == ABSENT else f"SHARECNV({float(sharecnv):g})"
        parts.append({"client_channel": shared, "stored_object": kind}.get(family, "all"))
    selecting = np.where(batch.number("selectors") > 0, "with selectors", "without selectors")
    by_label = np.array(parts, dtype=object)[codes]
    return np.where(batch.is_("family", "topic_publish"), selecting.astype(object), by_label)


SYSTEM = System(
    name="zos",
    title="WebSphere MQ on z/OS",
    families=("topic_publish", "subscribe", "client_channel", "stored_object", "consume", "restart"),
    targets=(
        # printed in whole microseconds, from runs that differ by a few percent
        *(
            Target(metric, 0.03)
            for metric in (
                "mqput_us", "mqput_increase_us", "mqget_us", "mqsetmp_us", "publication_us",
                "publication_us_per_subscriber", "mqsub_us", "mqsub_with_queue_us", "cpu_ms_per_msg",
                "restart_cpu_s",
            )
        ),
        # printed to two figures
        *(Target(metric, 0.04) for metric in ("data_rate_mb_per_s", "throughput_msgs_per_s", "response_ms")),
        Target("cpu_busy_pct", 2, "points"),
        # storage comes in pieces that no line through them hits
        *(
            Target(metric, 0.05)
            for metric in (
                "channel_memory_kb", "memory_per_client_kb", "clients", "page_set_kb", "below_bar_kb",
                "above_bar_kb", "extended_private_kb", "pages_used",
            )
        ),
        # counted, not timed
        Target("buffer_bytes", 0.02),
        *(
            Target(metric, 0.02)
            for metric in ("pages_persistent", "pages_real", "pages_real_increase", "buffer_pool_kb")
        ),
        # a few pages of twenty thousand
        Target("pages_unused", 0.0003),
    ),
    parameters=zos_calls.PARAMETERS + zos_channels.PARAMETERS + zos_storage.PARAMETERS,
    evaluate=_evaluate,
    refusals=_REFUSALS,
    regimes=_regimes,
    reach={
        # what each subscriber costs adds up to 512 at least: wmq-v7-zos line 945
        "topic_subscribers": 16,
        # so does what each object takes: 1.5 million subscriptions, line 642
        "objects": 150,
        # a topic string ends at 10 KB: line 191
        "name_bytes": 1.08,
        # ten properties are what a message is expected to have: line 294
        "message_properties": 10,
        # bytes are copied and sent, which is linear
        "message_bytes": 16,
    },
)  # fmt: skip
