"""What a command line of RabbitMQ PerfTest says about its run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from twin.core.runs import Loop
from twin.sources.harness.command_line import Told
from twin.sources.harness.perftest import TOLD

# a path, an image, a class or an archive is the program; a bare name may also be that of a container or queue
_PROGRAM = re.compile(r".*/perf-test(?::[\w.-]+)?|.*\.PerfTest|.*perf-test[\w.-]*\.jar")
_BARE_PROGRAM = re.compile(r"perf-test|PerfTest")
_PROMPT = re.compile(r"[$#>+]*")
_OPTION = re.compile(r"--?[A-Za-z].*")
_GLUED = re.compile(r"-([A-Za-z])([0-9.]+)")
# the shell's, no longer PerfTest's
_REST = re.compile(r"[|>&;].*|[12]>.*")
_SHORT = {
    "d": "id",
    "u": "queue",
    "x": "producers",
    "y": "consumers",
    "X": "producer-channel-count",
    "Y": "consumer-channel-count",
    "m": "ptxsize",
    "c": "confirm",
    "q": "qos",
    "s": "size",
    "f": "flag",
    "r": "rate",
    "P": "publishing-interval",
    "p": "predeclared",
    "B": "body",
    "jb": "json-body",
    "vs": "variable-size",
    "vr": "variable-rate",
    "qp": "queue-pattern",
    "qpf": "queue-pattern-from",
    "qpt": "queue-pattern-to",
    "qf": "queue-file",
    "qq": "quorum-queue",
    "sq": "stream-queue",
}
# a message has its number and its time in front, whatever size was asked for
_LEAST_BYTES = 12
_STREAM_PREFETCH = 200
_Options = Mapping[str, Sequence[str]]


def told_by(text: str) -> tuple[Told, str | None] | None:
    """What a line says if it is a command line, and the id that its run has if it names one."""
    try:
        # what stands alone parts the options of whatever starts the program from its own
        words = [word for word in shlex.split(text) if word != "--"]
    except ValueError:
        return None
    given = _arguments(words)
    if given is None:
        return None
    options = _options(given)
    try:
        told = _told(options)
    except ValueError as error:
        told = Told(TOLD, problem=f"its command line: {error}")
    return told, next(iter(options.get("id", ())), None)


def _arguments(words: Sequence[str]) -> Sequence[str] | None:
    """What stands behind the program, None where there is no program."""
    for program in (_PROGRAM, _BARE_PROGRAM):
        for at, word in enumerate(words):
            rest = words[at + 1 :]
            # prose may name the program too
            told = _OPTION.fullmatch(rest[0]) if rest else all(_PROMPT.fullmatch(one) for one in words[:at])
            if told and program.fullmatch(word):
                return rest
    return None


def _options(words: Sequence[str]) -> dict[str, list[str]]:
    """Values by the long names of options; one with no value is a flag."""
    found: dict[str, list[str]] = {}
    values: list[str] = []
    for word in words:
        if _REST.fullmatch(word):
            break
        if (glued := _GLUED.fullmatch(word)) and glued[1] in _SHORT:
            values = found[_SHORT[glued[1]]] = [glued[2]]
        elif _OPTION.fullmatch(word):
            name, _, value = word.lstrip("-").partition("=")
            values = found.setdefault(_SHORT.get(name, name), [])
            values += [value] if value else []
        else:
            values.append(word)
    return found


def _told(options: _Options) -> Told:
    producers = _count(options, "producers", 1) * _count(options, "producer-channel-count", 1)
    consumers = _count(options, "consumers", 1) * _count(options, "consumer-channel-count", 1)
    stream = "stream-queue" in options
    flags = ",".join(options.get("flag", ())).split(",")
    columns = {
        **TOLD,
        "producers": str(producers),
        "consumers": str(consumers),
        "persistent": "true" if stream or "quorum-queue" in options or "persistent" in flags else "false",
    }
    if not {"body", "json-body", "variable-size"} & {*options}:
        columns["message_bytes"] = str(max(_LEAST_BYTES, _count(options, "size", 0)))
    limits = {
        "window": _count(options, "confirm", 0),
        "prefetch": _count(options, "qos", 0) or (_STREAM_PREFETCH if stream else 0),
        "messages_per_commit": _count(options, "ptxsize", 0),
        "queues": _queues(options, consumers),
    }
    columns |= {name: str(limit) for name, limit in limits.items() if limit > 0}
    requested = _requested(options, producers)
    paced = requested is not None or "variable-rate" in options
    # without a limit nothing says whether the broker holds the producers back
    waits = limits["window"] > 0 or limits["messages_per_commit"] > 0
    loop: Loop = "paced" if paced else "closed" if waits else "unknown"
    return Told(columns, loop, requested, problem=_copied(options, consumers))


def _count(options: _Options, name: str, otherwise: int) -> int:
    values = options.get(name)
    if not values:
        return otherwise
    if not re.fullmatch(r"-?[0-9]+", values[0]):
        raise ValueError(f"--{name} {values[0]} is no number")
    return int(values[0])


def _requested(options: _Options, producers: int) -> float | None:
    """Each producer has the rate, or sends one message in each interval."""
    rates = {name: float(options[name][0]) for name in ("rate", "publishing-interval") if options.get(name)}
    if rates.get("rate", 0) > 0 and producers:
        return rates["rate"] * producers
    if rates.get("publishing-interval", 0) > 0 and producers:
        return producers / rates["publishing-interval"]
    return None


def _queues(options: _Options, consumers: int) -> int:
    if "queue-pattern-from" in options and "queue-pattern-to" in options:
        return _count(options, "queue-pattern-to", 0) - _count(options, "queue-pattern-from", 0) + 1
    if options.get("queue"):
        return len(options["queue"][0].split(","))
    return 1 if consumers == 1 and not _named(options) else 0


def _named(options: _Options) -> bool:
    return bool({"queue", "queue-pattern", "queue-file", "predeclared"} & {*options})


def _copied(options: _Options, consumers: int) -> str | None:
    if consumers > 1 and not _named(options):
        return "its command line names no queue: each consumer has one of its own and gets every message"
    return None
