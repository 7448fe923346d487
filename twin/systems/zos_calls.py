"""Processor time of the calls of a z/OS queue manager: publish, subscribe, consume, restart.

Costs add up: the call itself, what each property adds, what each subscriber adds. All hold for the reference
machine; another one takes `cpu_ratio` times as long (LSPR).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twin.queueing.network import Array, Flags
from twin.systems.model import Batch, Demands, Parameter

_US_PER_S = 1e6

PARAMETERS = (
    Parameter("put_us", "us", 50, 1, "a call takes tens of microseconds at a clock near 1 GHz"),
    Parameter("put_property_us", "us", 0.08, 1, "32 properties are not noticeable: wmq-v7-zos line 375"),
    Parameter("srb_us", "us", 20, 1, "scheduling a service request block: some thousand instructions"),
    Parameter("delivery_us", "us", 80, 0.7, "open and close cost 80 us: wmq-v7-zos line 697"),
    Parameter("selected_delivery_us", "us", 100, 1, "a delivery and a selector: a call and a half"),
    Parameter("early_delivery_us", "us", 100, 1, "the same with the property found at once"),
    Parameter("selector_us", "us", 30, 1, "parsing properties and a comparison: less than a call"),
    Parameter("set_property_us", "us", 0.5, 1, "a hash and a copy of some bytes: well below a call"),
    Parameter("get_us", "us", 100, 1, "a call that takes a message off a queue and frees its page"),
    Parameter("handed_get_us", "us", 10, 1, "the message is there already: a call and a copy"),
    Parameter("copy_us_per_kb", "us/KB", 0.7, 0.6, "memory of the time moves 1 to 2 GB/s"),
    Parameter("mqsub_us[own queue]", "us", 500, 1, "ten calls' worth: a topic node, a logged record"),
    Parameter("mqsub_us[managed]", "us", 1500, 1, "the same and a dynamic queue, made and logged"),
    Parameter("mqsub_us[topic tree]", "us", 1000, 1, "the same in a tree that has to be searched"),
    Parameter("existing_us_per_1000", "us", 3, 1, "a chain that grows: a few ns for each that is there"),
    Parameter("non_durable", "", 1, 0.3, "no effect expected: the work that is not logged is small"),
    Parameter("queue_create_us", "us", 950, 0.1, "printed apart from any test: wmq-v7-zos line 721"),
    Parameter("served_us", "us", 150, 1, "a get and a put that answers it"),
    Parameter("poll_us", "us", 20, 0.2, "a get without moving a message: wmq-v7-zos line 752"),
    Parameter("callback", "", 1, 0.3, "no effect expected: the same get and put, made by a handler"),
    Parameter("server_wait_us", "us", 115, 0.3, "33% more messages for 78 us less: wmq-v7-zos line 1134"),
    Parameter("start_s", "s", 1, 1, "address spaces, logs and page sets opened: about a second"),
    Parameter("buffer_us", "us", 5, 1, "one storage request: some thousand instructions"),
    Parameter("rebuild_us", "us", 100, 1, "less than the making of a subscription, which also logs"),
)


def old_version(batch: Batch) -> Flags:
    """Version 6: no publishing, no sharing of conversations, buffers obtained one by one."""
    labels, codes = batch.labels("version")
    old: Flags = np.array([label.startswith("6") for label in labels], dtype=bool)[codes]
    return old


@dataclass(frozen=True)
class Publishing:
    """Processor time for all messages of a configuration, in us; zero where a call is not made."""

    set_properties: Array
    put: Array
    get: Array
    # of the put: what selectors beyond the first add
    further_selectors: Array

    @property
    def total(self) -> Array:
        return self.set_properties + self.put + self.get


def publishing(batch: Batch, demands: Demands) -> Publishing:
    subscribers, properties = batch.number("topic_subscribers"), batch.number("message_properties")
    selectors, messages = batch.number("selectors"), batch.number("messages")
    # without a selector everybody receives everything, wanted or not
    delivered = np.where(selectors > 0, batch.number("wanted_messages"), messages)
    copy = demands["copy_us_per_kb"] * batch.number("message_bytes") / 1024

    # the SRB delivers to all subscribers or none; a topic without any needs none
    per_message = (
        demands["put_us"]
        + demands["put_property_us"] * properties
        + demands["srb_us"] * (subscribers > 0)
        + copy
    )
    further = demands["selector_us"] * np.maximum(selectors - 1, 0)
    # one selector is part of what a selected delivery costs; where it says no, that is all there is to pay
    selected = np.where(
        np.isfinite(batch.number("selected_property")),
        demands["early_delivery_us"],
        demands["selected_delivery_us"],
    )
    delivery = np.where(selectors > 0, selected + further, demands["delivery_us"]) + copy
    refusal = demands["selector_us"] * selectors
    put = messages * per_message + subscribers * (delivered * delivery + (messages - delivered) * refusal)
    get = np.where(batch.flag("waiting_getter"), demands["handed_get_us"], demands["get_us"]) + copy
    return Publishing(
        set_properties=batch.cpu_ratio * messages * properties * demands["set_property_us"],
        put=batch.cpu_ratio * put,
        get=batch.cpu_ratio * delivered * subscribers * get,
        further_selectors=batch.cpu_ratio * messages * subscribers * further,
    )


def subscribing_us(batch: Batch, demands: Demands) -> Array:
    """Durable subscriptions are written to a queue; managed ones also get a queue of their own."""
    managed = batch.number("managed")
    base = np.select(
        [managed == 1, managed == 0],
        [demands["mqsub_us[managed]"], demands["mqsub_us[own queue]"]],
        demands["mqsub_us[topic tree]"],
    )
    kept = np.where(batch.flag("durable"), 1.0, demands["non_durable"])
    existing = demands["existing_us_per_1000"] * batch.number("existing_subscriptions", absent=0.0) / 1000
    return batch.cpu_ratio * (base * kept + existing)


def consuming_us(batch: Batch, demands: Demands) -> Array:
    """A message got and answered. Whoever polls pays for the empty queues between two messages."""
    queues, busy = batch.number("queues"), batch.number("busy_queues")
    empty_polls = np.maximum(queues - busy, 0) / busy
    polling = demands["served_us"] + demands["poll_us"] * empty_polls
    handled = demands["callback"] * demands["served_us"]
    called = np.where(batch.is_("consumption", "callback"), handled, polling)
    # the request in, the reply out
    copies = 2 * demands["copy_us_per_kb"] * batch.number("message_bytes") / 1024
    return batch.cpu_ratio * (called + copies)


def restarting_s(batch: Batch, demands: Demands) -> Array:
    """Version 7 obtains each buffer pool at once, version 6 every buffer by itself."""
    buffers = np.where(old_version(batch), batch.number("buffers"), 0)
    rebuilt = batch.number("durable_subscriptions", absent=0.0)
    each_us = demands["buffer_us"] * buffers + demands["rebuild_us"] * rebuilt
    return batch.cpu_ratio * (demands["start_s"] + each_us / _US_PER_S)
