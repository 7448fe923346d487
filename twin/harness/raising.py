"""The rate is raised until the broker lags: the last one at which it kept up is what it can do."""

from __future__ import annotations

import asyncio

from twin.harness.driving import Run, working
from twin.harness.flowing import Flowing, loops, running_flow
from twin.harness.measuring import clock

_FIRST = 50.0
# by the half while it is easy, then by a twelfth
_COARSE, _FINE = 1.5, 1.08
_HIGHEST = 20_000.0
# Messages under way, beyond what the rate itself keeps in flight, that count as lagging: what waits on a
# queue at the end of a step would wait longer at the end of the next.
_DEPTH = 50


async def raising(run: Run) -> None:
    """Samples and figures are those of the last step that was kept up with."""
    async with running_flow(run) as flow, working(*loops(flow)):
        rate, factor, kept = _FIRST, _COARSE, 0.0
        best: list[dict[str, float]] = []
        figures: dict[str, float] = {}
        while rate <= _HIGHEST:
            if await _keeps_up(run, flow, rate):
                kept, best, figures = rate, list(run.meter.samples), run.meter.summary()
            elif factor == _COARSE and kept:
                factor = _FINE
                rate = kept
            else:
                break
            await run.room(1)
            rate *= factor
    run.meter.samples[:] = best
    run.figures |= figures


async def _keeps_up(run: Run, flow: Flowing, rate: float) -> bool:
    """One step by the clock; messages that are due at the same moment go in one unit of work."""
    plan = run.point.plan
    run.meter.begin()
    started = clock()
    ticks = put = 0
    async with asyncio.TaskGroup() as puts:
        while (now := clock()) < started + plan.length_s:
            due = int((now - started) * rate) - put
            if due > 0:
                puts.create_task(flow.put(due, started + put / rate))
                put += due
            if now >= started + (ticks + 1) * plan.interval_s:
                run.meter.tick()
                ticks += 1
            if run.under_way > _DEPTH + rate * plan.interval_s:
                return False
            await asyncio.sleep(1 / min(rate, 500.0))
    run.meter.tick()
    return run.under_way <= _DEPTH
