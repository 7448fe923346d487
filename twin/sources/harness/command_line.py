"""What the command line of MQ-CPH or PerfHarness says about a run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from twin.core.runs import Loop

_COMMAND = re.compile(r"(?:^|\s)-tc\s+\S")
_OPTION = re.compile(r"-[a-z]{2}")
_CLASS, _THREADS, _BYTES, _PERSISTENT, _RATE = "-tc", "-nt", "-ms", "-pp", "-rt"
_TRANSACTED, _PER_COMMIT, _INTERVAL = "-tx", "-cc", "-ss"
_TRUE = ("", "true", "1")
# what a thread of a class does, and so which columns count the threads; an iteration is a round trip, or a
# message that is put, got, or both
_REQUESTERS = ("requestor", "requester")
_ONE_WAY: Mapping[str, tuple[str, ...]] = {
    "sender": ("producers",),
    "receiver": ("consumers",),
    "putget": ("producers", "consumers"),
}


@dataclass(frozen=True)
class Told:
    """Configuration columns as texts, how the load was made, and why the run cannot be used, if so."""

    columns: Mapping[str, str] = field(default_factory=dict)
    loop: Loop = "unknown"
    requested_msgs_per_s: float | None = None
    # seconds between two lines
    interval_s: float | None = None
    problem: str | None = None


def is_command_line(text: str) -> bool:
    return _COMMAND.search(text) is not None


# an archive's runs repeat their command lines
@lru_cache(maxsize=10_000)
def told_by(text: str) -> Told:
    try:
        options = _options(shlex.split(text))
    except ValueError as error:
        return Told(problem=f"its command line cannot be taken apart: {error}")
    runs = options[_CLASS].rsplit(".", 1)[-1].lower()
    for option in (_THREADS, _BYTES):
        if option not in options:
            return Told(problem=f"its command line has no {option}")
    columns = _columns(runs, options)
    if columns is None:
        understood = ", ".join((*_REQUESTERS, *_ONE_WAY))
        return Told(problem=f"{_CLASS} {options[_CLASS]}: only {understood} are understood")
    try:
        per_thread, interval = (float(options.get(option) or 0) for option in (_RATE, _INTERVAL))
        requested = per_thread * int(options[_THREADS])
    except ValueError:
        return Told(problem=f"one of {_RATE}, {_INTERVAL}, {_THREADS} is no number")
    if requested > 0:
        columns |= {"offered_rate_msgs_per_s": f"{requested:g}"}
    return Told(
        columns,
        # who waits for a reply before the next request hides the broker's pauses: a closed loop is called so.
        # `-rt` is what each thread is to do in a second; without it, or with 0, as much as it can
        loop="paced" if requested > 0 else "closed",
        requested_msgs_per_s=requested if requested > 0 else None,
        interval_s=interval if interval > 0 else None,
    )


def _columns(runs: str, options: Mapping[str, str]) -> dict[str, str] | None:
    persistent = options.get(_PERSISTENT, "false").lower() in _TRUE
    columns = {
        "message_bytes": options[_BYTES],
        "persistent": "true" if persistent else "false",
    }
    if runs in _REQUESTERS:
        return {"family": "request_reply", "clients": options[_THREADS], **columns}
    if runs not in _ONE_WAY:
        return None
    counted = {who: options[_THREADS] if who in _ONE_WAY[runs] else "0" for who in ("producers", "consumers")}
    transacted = options.get(_TRANSACTED, "false").lower() in _TRUE
    per_commit = (options.get(_PER_COMMIT) or "1") if transacted else "1"
    # a thread that puts waits until the broker has the message
    window = {"window": per_commit} if counted["producers"] != "0" else {}
    return {"family": "point_to_point", **counted, **columns, "messages_per_commit": per_commit, **window}


def _options(words: list[str]) -> dict[str, str]:
    """A flag has no value, and the next word is an option again."""
    found: dict[str, str] = {}
    name = None
    for word in words:
        if _OPTION.fullmatch(word):
            name = word
            found[name] = ""
        elif name is not None and not found[name]:
            found[name] = word
    return found
