"""What a message costs on its way from publisher to subscriber, with what is known from outside the tables.

Processors have 200 MHz. A call to the queue manager is about 100,000 instructions with its latches and
process switches, half a millisecond. Copies run at about 20 MB/s, small writes to disk at about 1 MB/s.
"""

from __future__ import annotations

from twin.systems.model import Parameter, write_times

_COPY = "order of magnitude: one copy at 20 MB/s"
_COPIES = "order of magnitude: four copies at 20 MB/s"
_WRITE = "order of magnitude: small writes at 1 MB/s"
_SMALL_OVERHEAD = "no effect expected: the broker's overhead is very small (line 147)"
_SAME = "no effect expected: the same work takes the same time elsewhere"


def _calls(count: int, what: str) -> str:
    return f"order of magnitude: {count} calls of 0.5 ms ({what})"


PARAMETERS = (
    *write_times("force_ms"),
    Parameter("size_exponent", "", 1, 0.1, "no effect expected; large blocks may move a little cheaper"),
    # delivery by one broker
    Parameter("delivery_ms", "ms", 1, 0.7, _calls(2, "put and get")),
    Parameter("delivery_ms_per_kb", "ms/KB", 0.05, 0.7, _COPY),
    Parameter("publication_ms", "ms", 1, 0.7, _calls(2, "the broker waits and gets")),
    Parameter("application_ms", "ms", 1, 0.7, _calls(2, "the application puts and waits")),
    Parameter("commit_ms", "ms", 0.5, 0.7, _calls(1, "commit")),
    Parameter("match_ms", "ms", 0.5, 0.7, "order of magnitude: parse a header and look it up, like a call"),
    Parameter("genuine_delivery", "", 1, 0.1, _SMALL_OVERHEAD),
    Parameter("logged_ms_per_kb", "ms/KB", 1, 0.7, _WRITE),
    Parameter("publication_logged", "", 1, 0.5, _SAME),
    # messages that wait in memory, or do not fit there
    Parameter("buffer_kb", "KB", 64, 0.3, "the product's default buffer of a queue"),
    Parameter("rounding", "", 0.1, 0.5, "judged: a full buffer or cache shows over a tenth of its size"),
    Parameter("header_kb", "KB", 0.5, 0.3, "message descriptor of 364 bytes and a publish header"),
    Parameter("spill_ms_per_kb", "ms/KB", 0.2, 0.7, _COPIES),
    Parameter("spill_outside_syncpoint", "", 1, 0.3, _SAME),
    Parameter("backlog_share", "", 0.5, 0.5, "one process puts while another gets: half may be left"),
    # a queue for each subscriber
    Parameter("own_queue_ms", "ms", 0.5, 0.7, _calls(1, "another queue is located")),
    Parameter("own_queue_ms_per_kb", "ms/KB", 1, 0.7, _WRITE),
    Parameter("own_queue_gain", "", 0.1, 0.7, "writes to many files are ordered by place: a weak gain"),
    Parameter("reopen_ms", "ms", 1, 0.7, _calls(2, "open and close")),
    Parameter("reopen_ms_per_kb", "ms/KB", 1, 0.7, _WRITE),
    Parameter("cache_span", "", 0.5, 0.3, "the rise from 128 handles is half done around 160 (line 264)"),
    # two brokers and the channels between them
    Parameter("channel_ms", "ms", 4, 0.7, _calls(8, "two channels get, send, receive and put")),
    Parameter("channel_batch_ms", "ms", 4, 0.7, _calls(8, "two channels ask, commit, answer and commit")),
    Parameter("channel_ms_per_kb", "ms/KB", 0.2, 0.7, _COPIES),
    Parameter("channel_forces", "", 1, 0.2, "each reply is read for itself: one force"),
    Parameter("end_forces", "", 2, 0.2, "each end of a channel forces its state and its commit"),
    Parameter("channel_logged", "", 1, 0.3, _SAME),
    Parameter("channel_spill", "", 1, 0.3, _SAME),
    Parameter("hop_ms", "ms", 1, 0.7, _calls(2, "get and put")),
    Parameter("hop_wake_ms", "ms", 0.5, 0.7, _calls(1, "a waiting get returns")),
    Parameter("hop_wake_in_syncpoint", "", 1, 0.5, _SAME),
    Parameter("hop_commit", "", 1, 0.3, _SAME),
    Parameter("hop_copy", "", 1, 0.5, "a hop gets and puts a message, as a delivery does: the same copies"),
    Parameter("hop_logged", "", 1, 0.3, _SAME),
    Parameter("genuine_hop", "", 1, 0.1, _SMALL_OVERHEAD),
    Parameter("genuine_hop_outside_syncpoint", "", 1, 0.1, _SMALL_OVERHEAD),
    Parameter("genuine_hop_copy", "", 1, 0.2, _SMALL_OVERHEAD),
    Parameter("batch_fill", "", 1, 0.5, "no effect expected: batches are as full as they may be"),
    # the bank's disks
    Parameter("dedicated_force", "", 0.7, 0.3, "a log with a disk of its own (line 364) seldom seeks"),
    Parameter("file_ms", "ms", 6, 0.5, "a plain disk, wbimb-v5-solaris line 702"),
    Parameter("file_written", "", 1, 0.3, _SAME),
)
