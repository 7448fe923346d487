"""One input tried on one target: what is told of it, if anything is wrong."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .targets import Target

_HERE = Path(__file__).resolve().parent
PROJECT = _HERE.parents[1]
# of processor time: a busy machine makes nothing hang
MOST_SECONDS = 5.0


class Hanging(BaseException):
    """Not an exception that a reader could take for one of its own."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def end(*_: object) -> None:
        raise Hanging

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def fault(target: Target, raw: bytes, seconds: float = MOST_SECONDS) -> str | None:
    """None for a value or a documented refusal; else what happened and where, the same for the same fault."""
    try:
        with _at_most(seconds):
            target.run(raw)
    except target.refusals:
        return None
    except Hanging as error:
        return f"hang: still busy after {seconds:g} s in {_place(error)}"
    except Exception as error:
        return f"crash: {type(error).__name__} in {_place(error)}"
    return None


def _place(error: BaseException) -> str:
    """The innermost line of ours: where the reader should have refused."""
    files = [(Path(one.filename), one.name) for one in traceback.extract_tb(error.__traceback__)]
    ours = [(file, name) for file, name in files if file.parent != _HERE and _is_ours(file)]
    return f"{ours[-1][0].relative_to(PROJECT)}:{ours[-1][1]}" if ours else "no line of ours"


def _is_ours(file: Path) -> bool:
    return file.is_relative_to(PROJECT) and ".venv" not in file.parts


def smaller(raw: bytes, still: Callable[[bytes], bool], tries: int = 300) -> bytes:
    """The input without whatever it does not need to fail in the same way."""
    size = max(len(raw) // 2, 1)
    while tries and size:
        at = 0
        while at < len(raw) and tries:
            shorter = raw[:at] + raw[at + size :]
            tries -= 1
            if still(shorter):
                raw = shorter
            else:
                at += size
        size //= 2
    return raw
