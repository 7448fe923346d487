"""Storage that objects take in a z/OS queue manager: a fixed part, and a part for each KB of their names."""

from __future__ import annotations

import numpy as np

from twin.queueing.network import Array, Flags
from twin.systems.model import Batch, Demands, Parameter, printed_constants
from twin.systems.zos_calls import old_version

PRINTED = printed_constants("zos")

_PROPERTY = "a name of 8 and a value of 7 bytes (wmq-v7-zos line 604) in tags of the same length"
_HEADER = "a header of 36 bytes with folders and names around it"

PARAMETERS = (
    Parameter("topic_page_set_kb", "KB", 1, 1, "a record of attributes, like that of other objects"),
    Parameter("topic_page_set_strings", "", 1, 0.3, "the record contains the topic string once"),
    Parameter("topic_below_bar_kb", "KB", 5, 1, "control blocks of some KB"),
    Parameter("topic_below_bar_strings", "", 2, 1, "the string in the object and in the index of names"),
    Parameter("topic_above_bar_kb", "KB", 3, 1, "a page or less for a node of the topic tree"),
    Parameter("topic_above_bar_strings", "", 1, 0.5, "a node of the topic tree knows its string"),
    Parameter("queue_kb", "KB", 1, 0.7, "a record of attributes, about a thousand bytes"),
    Parameter("system_pages", "pages", 100, 1, "some hundred objects of the system at about 1 KB each"),
    Parameter("system_message_pages", "pages", 3, 1, "version 7 keeps a few messages of its own: some pages"),
    Parameter("property_bytes", "bytes", 30, 0.3, _PROPERTY),
    *(
        Parameter(f"property_header_bytes[{kind}]", "bytes", 100, 1, _HEADER)
        for kind in ("none", "msgprop", "rfh2", "compat")
    ),
)

# where the system's own definitions and messages are
_DEFINITIONS, _MESSAGES = 0, 1


def storage(batch: Batch, demands: Demands) -> dict[str, Array]:
    page_set_kb, below_bar_kb, above_bar_kb = _kb(batch, demands)
    return {
        "page_set_kb": page_set_kb,
        "below_bar_kb": below_bar_kb,
        "above_bar_kb": above_bar_kb,
        # the buffers of page sets are in the same region as what is below the bar
        "extended_private_kb": page_set_kb + below_bar_kb,
        "pages_used": page_set_kb / PRINTED["page_kb"],
        "buffer_bytes": _buffer_bytes(batch, demands),
        **_pages(batch, demands),
    }


def _kb(batch: Batch, demands: Demands) -> tuple[Array, Array, Array]:
    """In page sets, below and above the 2 GB line; what nobody has told is NaN."""
    objects, name_bytes = batch.number("objects"), batch.number("name_bytes")
    topic, subscription = batch.is_("object_kind", "topic"), batch.is_("object_kind", "subscription")

    def of_topics(place: str) -> Array:
        strings_kb = demands[f"topic_{place}_strings"] * name_bytes / 1024
        return objects * (demands[f"topic_{place}_kb"] + strings_kb)

    # the topic string and the subscription's name, both of this length
    subscription_kb = objects * (PRINTED["subscription_record_bytes"] + 2 * name_bytes) / 1024
    queues_kb = np.where(batch.is_("object_kind", "queue"), _queues_kb(batch, demands), np.nan)
    page_set = np.select([topic, subscription], [of_topics("page_set"), subscription_kb], queues_kb)
    below_bar = np.where(topic, of_topics("below_bar"), np.nan)
    in_tree_kb = objects * PRINTED["subscription_above_bar_kb"]
    above_bar = np.select([topic, subscription], [of_topics("above_bar"), in_tree_kb], np.nan)
    return page_set, below_bar, above_bar


def _on_page_set(batch: Batch, number: int) -> Flags:
    """Whether a configuration asks for this page set, alone or with all others."""
    page_set = batch.number("page_set")
    asked: Flags = np.isnan(page_set) | (page_set == number)
    return asked


def _queues_kb(batch: Batch, demands: Demands) -> Array:
    """Queues are defined on one page set, the others do not grow."""
    return np.where(_on_page_set(batch, _DEFINITIONS), batch.number("objects") * demands["queue_kb"], 0)


def _pages(batch: Batch, demands: Demands) -> dict[str, Array]:
    """Pages of one page set, or of all, when queues are added to the system's own objects."""
    old, added_kb = old_version(batch), _queues_kb(batch, demands)
    added = added_kb / PRINTED["page_kb"]
    definitions = np.where(_on_page_set(batch, _DEFINITIONS), demands["system_pages"] + added, 0)
    messages = np.where(~old & _on_page_set(batch, _MESSAGES), demands["system_message_pages"], 0)
    used = definitions + messages
    page_sets = np.where(np.isnan(batch.number("page_set")), PRINTED["page_sets"], 1)
    total = PRINTED["page_set_pages"] * page_sets
    counts = {
        "pages_persistent": used,
        "pages_unused": total - used,
        # version 6 keeps whole buffer pools in real storage, version 7 what holds data
        "pages_real": np.where(old, total, used),
        "pages_real_increase": np.where(old, 0, added),
        "buffer_pool_kb": added_kb,
    }
    # definitions beyond the end of their page set would expand it, which was not measured
    fits = definitions < PRINTED["page_set_pages"]
    told = batch.is_("object_kind", "queue") & fits
    # a count of none has no relative error
    return {name: np.where(told & (count > 0), count, np.nan) for name, count in counts.items()}


def _buffer_bytes(batch: Batch, demands: Demands) -> Array:
    """A message as it is handed to the application, with its properties in the format asked for."""
    properties = batch.number("message_properties", absent=0.0)
    header = demands.by("property_header_bytes", batch, "property_format")
    shown = (properties > 0) & ~batch.is_("property_format", "dropped")
    return batch.number("message_bytes") + np.where(shown, header + properties * demands["property_bytes"], 0)
