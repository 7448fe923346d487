"""Ctrl-C that is not lost while a run is under way.

`asyncio.run` turns it into a cancellation. A client library whose answer comes in the same moment swallows
that, or tells of a connection that broke, and experiments would go on with the next point.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def run_to_the_end(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Like `asyncio.run`, but once interrupted it ends with a KeyboardInterrupt, whatever else it would have
    ended with. Until then `work` may tidy up; another Ctrl-C interrupts that too."""
    interrupted = False
    # not in a thread, and not where somebody else listens
    in_main = threading.current_thread() is threading.main_thread()
    ours = in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler

    async def interruptible() -> _Result:
        task = asyncio.current_task()
        assert task is not None

        def interrupt() -> None:
            nonlocal interrupted
            interrupted = True
            task.cancel()

        if ours:
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
        return await work

    try:
        return asyncio.run(interruptible())
    finally:
        if interrupted:
            raise KeyboardInterrupt
