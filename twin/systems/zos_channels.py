"""Clients of a z/OS queue manager: memory of their channels, and processor time of their messages."""

from __future__ import annotations

import numpy as np

from twin.queueing.network import Array, Flags
from twin.systems.model import Batch, Demands, Parameter, printed_constants
from twin.systems.zos_calls import old_version

PRINTED = printed_constants("zos")

_SAME = "no effect expected: another version of the same work"

PARAMETERS = (
    Parameter("instance_kb", "KB", 100, 1, "stack, control blocks and socket buffers of a channel thread"),
    Parameter("old_instance", "", 1, 0.3, _SAME),
    Parameter("duplex_instance", "", 1, 0.7, "what a protocol in both directions at once adds is not known"),
    Parameter("ssl_kb", "KB", 20, 1, "keys and buffers of an encrypted session: some tens of KB"),
    Parameter("message_copies", "", 2, 1, "the message as it comes from the queue and as it is sent"),
    Parameter("conversation_buffers", "", 1, 1, "each conversation has a buffer for its message, or several"),
    Parameter("transfer_us", "us", 200, 1, "a put or get and the sending of it: several calls and switches"),
    Parameter("half_duplex_transfer", "", 1, 0.2, _SAME),
    Parameter("old_transfer", "", 1, 0.2, _SAME),
    Parameter(
        "turnaround", "", 1.2, 0.1, "of 1000 bytes, 55% is saved by not waiting: wmq-v7-zos lines 993, 1056"
    ),
    Parameter("contention_us", "us", 100, 1, "conversations contend for one thread: wmq-v7-zos line 481"),
    Parameter(
        "transfer_per_kb", "", 0.021, 0.3,
        "a saving of 55% at 1000 bytes and 18% at 100,000 (wmq-v7-zos line 993): 2% of a put for each KB",
    ),
)  # fmt: skip


def channel_instances(batch: Batch) -> Array:
    """Threads share as few instances as SHARECNV lets them."""
    shared_by = np.maximum(batch.number("sharecnv", absent=0.0), 1)
    return np.ceil(batch.number("client_threads") / shared_by)


def conversations(batch: Batch) -> Array:
    """On one channel instance."""
    return batch.number("client_threads") / channel_instances(batch)


def channel_memory_kb(batch: Batch, demands: Demands) -> Array:
    """Of one channel instance with the conversations on it."""
    segment_kb = PRINTED["segment_kb"]
    message_kb = batch.number("message_bytes", absent=0.0) / 1024
    instance = demands["instance_kb"] * np.select(
        [old_version(batch), _duplex(batch)], [demands["old_instance"], demands["duplex_instance"]], 1.0
    )
    # version 6 has room for a segment at any time; version 7 has buffers close to the size of the message
    buffered_kb = np.where(old_version(batch), np.maximum(message_kb - segment_kb, 0), message_kb)
    on_network_kb = message_kb + PRINTED["header_bytes"] / 1024
    # a shared thread receives for a conversation in whole segments
    conversation_kb = demands["conversation_buffers"] * segment_kb * np.ceil(on_network_kb / segment_kb)
    return (
        instance
        + demands["ssl_kb"] * batch.flag("ssl")
        + demands["message_copies"] * buffered_kb
        + np.where(_duplex(batch), conversations(batch) * conversation_kb, 0)
    )


def most_clients(batch: Batch, memory_kb: Array) -> Array:
    """As many as the channel initiator's storage and the limit of channels let in."""
    instances = np.minimum(np.floor(PRINTED["extended_private_kb"] / memory_kb), PRINTED["max_channels"])
    return instances * conversations(batch)


def transfer_us(batch: Batch, demands: Demands) -> Array:
    """Processor time of a message that a client puts or gets."""
    alone_us = demands["transfer_us"]
    # SHARECNV(0) talks like version 6
    protocol = np.where(_duplex(batch), 1.0, demands["half_duplex_transfer"])
    protocol = protocol * np.where(old_version(batch), demands["old_transfer"], 1.0)
    # nobody waits for a response to asynchronous puts but now and then, nor asks for what is read ahead
    turnarounds = np.select(
        [batch.flag("read_ahead"), batch.flag("asynchronous_put")],
        [0.0, 1 / PRINTED["messages_per_response"]],
        1.0,
    )
    turnaround_us = alone_us * demands["turnaround"]
    # more conversations make each message dearer, if ever more slowly; the receiving thread is no fixed
    # ceiling, for one instance with ten of them carries more than half of what two with five do
    contention_us = demands["contention_us"] * np.log(conversations(batch))
    thousands = batch.number("message_bytes", absent=0.0) / 1000
    by_size_us = demands["transfer_per_kb"] * thousands * (alone_us + turnaround_us)
    total_us: Array = alone_us * protocol + turnaround_us * turnarounds + contention_us + by_size_us
    return batch.cpu_ratio * total_us


def network_bytes(batch: Batch) -> Array:
    return batch.number("message_bytes", absent=0.0) + PRINTED["header_bytes"]


def network_bytes_per_s(batch: Batch) -> Array:
    return PRINTED["network_bytes_per_s"] / batch.network_ratio


def _duplex(batch: Batch) -> Flags:
    """SHARECNV of 1 or more: the protocol of version 7 that talks in both directions at once."""
    return batch.number("sharecnv", absent=0.0) >= 1
