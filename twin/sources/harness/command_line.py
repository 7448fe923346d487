"""What the command line of MQ-CPH or PerfHarness says about the configuration."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

_COMMAND = re.compile(r"(?:^|\s)-tc\s+\S")
_CLASS, _THREADS, _BYTES, _PERSISTENT, _RATE = "-tc", "-nt", "-ms", "-pp", "-rt"
_OPTION = re.compile(r"-[a-z]{2}")
# a thread of these sends a request and waits for its reply, which makes an iteration a round trip
_REQUESTERS = ("requestor", "requester")


def is_command_line(text: str) -> bool:
    return _COMMAND.search(text) is not None


def told_by(text: str) -> tuple[dict[str, str], str | None]:
    """Configuration columns, how the load was made, and why the run cannot be used, if so."""
    try:
        options = _options(shlex.split(text))
    except ValueError as error:
        return {}, f"its command line cannot be taken apart: {error}"
    runs = options[_CLASS].rsplit(".", 1)[-1]
    if runs.lower() not in _REQUESTERS:
        return {}, f"{_CLASS} {options[_CLASS]}: only requesters are understood"
    for option in (_THREADS, _BYTES):
        if option not in options:
            return {}, f"its command line has no {option}"
    told = {
        "family": "request_reply",
        "clients": options[_THREADS],
        "message_bytes": options[_BYTES],
        "persistent": "true" if options.get(_PERSISTENT, "false").lower() in ("", "true", "1") else "false",
    }
    return _paced(told, options)


def _paced(told: dict[str, str], options: Mapping[str, str]) -> tuple[dict[str, str], str | None]:
    """Who waits for a reply before the next request hides the broker's pauses: a closed loop is called so.
    `-rt` is what each thread is to do in a second; without it, or with 0, as much as it can."""
    try:
        rate = float(options.get(_RATE) or 0) * int(told["clients"])
    except ValueError:
        return {}, f"{_RATE} {options[_RATE]} is no rate"
    if rate <= 0:
        return told | {"loop": "closed"}, None
    return told | {"loop": "closed, paced", "offered_rate_msgs_per_s": f"{rate:g}"}, None


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
