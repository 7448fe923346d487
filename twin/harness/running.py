"""Points run one after the other, repeats going round the whole grid. Every finished point is in the results,
whatever happens to the next."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from twin.harness.brokers.interface import Broker, BrokerProblem, NotOffered
from twin.harness.brokers.registry import Place, places
from twin.harness.driving import Run
from twin.harness.experiments import Point, experiments, interleaved
from twin.harness.flowing import flowing
from twin.harness.interrupting import run_to_the_end
from twin.harness.measuring import Meter, ProcessorTime
from twin.harness.publishing import publishing
from twin.harness.putting import putting
from twin.harness.raising import raising
from twin.harness.recovery import recovering
from twin.harness.results import Results
from twin.sources.harness.steady import REACHED

_DRIVERS: dict[str, Callable[[Run], Awaitable[None]]] = {
    "putting": putting,
    "publishing": publishing,
    "flowing": flowing,
    "raising": raising,
    "recovering": recovering,
}


@dataclass(frozen=True)
class Outcome:
    """What became of a point."""

    point: Point
    repeat: int
    summary: dict[str, Any]
    # why there is nothing, or only a part
    problem: str | None = None
    offered: bool = True

    @property
    def missed(self) -> bool:
        """Whether it fell short of the rate that was asked for."""
        asked = self.point.columns.get("offered_rate_msgs_per_s")
        return asked is not None and self.summary.get("average_msgs_per_s", 0.0) < REACHED * asked


class Bench:
    """Brokers that experiments run on; those that we start are ended with it."""

    def __init__(self, addresses: dict[str, str | None], in_a_row: int = 1) -> None:
        """Addresses by the names of the brokers, None where the usual place will do; `in_a_row`: how many of
        a kind a message goes through."""
        self._addresses, self._in_a_row = addresses, in_a_row
        self._stack = ExitStack()
        self.places: dict[str, list[Place]] = {}
        self.brokers: dict[str, Broker] = {}

    def __enter__(self) -> Bench:
        try:
            for name, address in self._addresses.items():
                self.places[name] = self._stack.enter_context(places(name, address, self._in_a_row))
                self.brokers[name] = run_to_the_end(self.places[name][0].reached())
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def points(self, names: Sequence[str], scale: str) -> list[Point]:
        """Of some experiments on the brokers that are here and that they are for."""
        known = experiments()
        return [
            point
            for name in names
            for broker in self.brokers.values()
            if broker.name in known[name].brokers
            for point in known[name].points(name, broker, scale)
        ]

    def run(self, points: Sequence[Point], repeats: int, results: Mapping[str, Results]) -> Iterator[Outcome]:
        """Results by broker. Raises BrokerProblem when one is gone for good; what was measured until then is
        kept."""
        for repeat, point in interleaved(points, repeats):
            yield self.once(point, repeat, results[point.broker])[0]

    def once(self, point: Point, repeat: int, results: Results) -> tuple[Outcome, Run]:
        run = Run(point, self.places[point.broker], [self.brokers[point.broker]], self._meter(point.broker))
        try:
            run_to_the_end(self._driven(run))
        except NotOffered as reason:
            return Outcome(point, repeat, {}, str(reason), offered=False), run
        except BrokerProblem as problem:
            summary = results.write(run, repeat, str(problem))
            # a broker that does not even answer will not run the next point either
            run_to_the_end(self.places[point.broker][0].reached())
            return Outcome(point, repeat, summary, str(problem)), run
        return Outcome(point, repeat, results.write(run, repeat)), run

    async def _driven(self, run: Run) -> None:
        run.brokers = [await place.reached() for place in run.places[: run.column("brokers", 1)]]
        await _DRIVERS[run.point.driver](run)

    def _meter(self, name: str) -> Meter:
        process_ids = [
            process_id for place in self.places[name] for process_id in place.process_ids(self.brokers[name])
        ]
        return Meter(
            broker=ProcessorTime(sorted(set(process_ids))),
            driver=ProcessorTime([os.getpid()]),
        )
