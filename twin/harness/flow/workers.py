"""The processes of a flow, from the side of whoever runs an experiment: all up, one problem, all gone."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType

from twin.harness.brokers.interface import BrokerProblem
from twin.harness.flow.offered import refuse_what_is_not_offered
from twin.harness.flow.plan import Plan
from twin.harness.flow.worker import READY

# a process takes about a second of a processor to start, and there may be many
_STARTING_S = 120.0
_ENDING_S = 5.0
_LOOK_EVERY_S = 0.02


class Workers:
    """As a context, plain or asynchronous: all instances are ready inside, and no process is left after."""

    def __init__(self, plan: Plan) -> None:
        refuse_what_is_not_offered(plan.flow)
        if len(plan.places) < plan.flow.brokers:
            raise BrokerProblem(
                f"{plan.flow.brokers} brokers are to be used, and {len(plan.places)} are told"
            )
        self._plan = plan
        self._processes: list[_Process] = []
        self._problem: str | None = None

    def start(self) -> None:
        flow = self._plan.flow
        for queue in range(flow.queues):
            for group in range(flow.execution_groups):
                self._processes.append(_Process(self._plan, queue, group))

    def ready(self) -> None:
        """Returns when every instance takes messages; raises BrokerProblem if one cannot."""
        until = time.monotonic() + _STARTING_S
        while not self._is_ready(until):
            time.sleep(_LOOK_EVERY_S)

    @property
    def process_ids(self) -> list[int]:
        return [one.process.pid for one in self._processes if one.process.poll() is None]

    def problem(self) -> str | None:
        """Of the first worker that ended by itself."""
        if self._problem is None:
            ended = (one for one in self._processes if one.process.poll() is not None)
            self._problem = next((one.last_word() for one in ended), None)
        return self._problem

    def stop(self) -> None:
        """A problem that there was can still be asked for."""
        self.problem()
        processes, self._processes = self._processes, []
        for one in processes:
            one.process.terminate()
        until = time.monotonic() + _ENDING_S
        for one in processes:
            one.end(until)

    def __enter__(self) -> Workers:
        try:
            self.start()
            self.ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Workers:
        try:
            self.start()
            until = time.monotonic() + _STARTING_S
            while not self._is_ready(until):
                await asyncio.sleep(_LOOK_EVERY_S)
        except BaseException:
            self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _is_ready(self, until: float) -> bool:
        problem = self.problem()
        if problem is None and time.monotonic() > until:
            problem = f"flow workers were not ready within {_STARTING_S:.0f} s"
        if problem is not None:
            raise BrokerProblem(problem)
        return all(one.is_ready for one in self._processes)


class _Process:
    """An execution group, and a thread that hears what it says."""

    def __init__(self, plan: Plan, queue: int, group: int) -> None:
        self.is_ready = False
        self._said = ""
        # a session of its own: Ctrl-C on the terminal is for the harness, which ends its workers itself
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "twin.harness.flow.worker", str(queue), str(group)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            encoding="utf-8", errors="replace", start_new_session=True,
        )  # fmt: skip
        assert self.process.stdin is not None
        # it stays open: its end is what tells a worker that we are gone; one that is gone itself has said why
        with suppress(BrokenPipeError):
            self.process.stdin.write(f"{plan.as_text()}\n")
            self.process.stdin.flush()
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def last_word(self) -> str:
        self._listening.join(_ENDING_S)
        return self._said or f"a flow worker ended with code {self.process.poll()} and said nothing"

    def end(self, until: float) -> None:
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._listening.join(_ENDING_S)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == READY:
                self.is_ready = True
            elif line.strip():
                self._said = line.strip()
