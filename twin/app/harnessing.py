"""Experiments on live brokers, from names to a file in the inbox."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from twin.app.landing import Landing
from twin.app.watching import known_epoch, source_of
from twin.core.settings import Settings
from twin.harness.brokers.interface import Broker
from twin.harness.brokers.registry import BROKERS
from twin.harness.experiments import experiments, scales
from twin.harness.results import Results
from twin.harness.running import Bench, Outcome


class BadChoice(Exception):
    """An experiment, broker or scale that is not known here."""


@dataclass(frozen=True)
class Choice:
    """What to run."""

    experiments: Sequence[str]
    # by name; None where the usual address will do
    brokers: dict[str, str | None]
    scale: str
    repeats: int | None = None


def chosen(names: Sequence[str], brokers: Sequence[str], scale: str, repeats: int | None) -> Choice:
    """`brokers` are names, or `name=address`."""
    known = experiments()
    wanted = list(names) or list(known)
    for name in wanted:
        if name not in known:
            raise BadChoice(f"{name!r} is no experiment: one of {', '.join(known)}")
    if scale not in scales():
        raise BadChoice(f"{scale!r} is no scale: one of {', '.join(scales())}")
    addresses: dict[str, str | None] = {}
    for one in brokers or ["nats"]:
        name, _, address = one.partition("=")
        if name not in BROKERS:
            raise BadChoice(f"{name!r} is no broker that is known here: one of {', '.join(BROKERS)}")
        addresses[name] = address or None
    without = [name for name in wanted if not set(known[name].brokers) & set(addresses)]
    if names and without:
        raise BadChoice(f"{without[0]} runs on {' or '.join(known[without[0]].brokers)} only")
    return Choice([name for name in wanted if name not in without], addresses, scale, repeats)


def run_experiments(
    settings: Settings,
    choice: Choice,
    out: Path | None,
    started: Callable[[int], None],
    told: Callable[[Outcome], None],
) -> list[Path]:
    """The files with all runs; what was finished is in them whatever happens. Without `out` there is one for
    each broker, and they go to the inbox at the end, where they are taken like any other."""
    with ExitStack() as stack:
        bench = stack.enter_context(Bench(choice.brokers, _brokers_in_a_row(choice)))
        if out is not None:
            shared = stack.enter_context(closing(Results(out)))
            files = dict.fromkeys(choice.brokers, shared)
        else:
            name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}"
            files = {
                broker: stack.enter_context(landing(settings, f"{broker}-{name}", bench.brokers[broker]))
                for broker in choice.brokers
            }
        points = bench.points(choice.experiments, choice.scale)
        repeats = choice.repeats or scales()[choice.scale].repeats
        started(len(points) * repeats)
        for outcome in bench.run(points, repeats, files):
            told(outcome)
    return [one.path for one in dict.fromkeys(files.values()) if one.path.exists()]


@contextmanager
def landing(settings: Settings, name: str, broker: Broker) -> Iterator[Results]:
    """Results that go to the inbox at the end, in one step, so that nobody takes half a file; without a run
    they go nowhere."""
    results = Results(settings.home / "harness" / f"{name}.jsonl")
    try:
        yield results
    finally:
        results.close()
        if not results.path.stat().st_size:
            results.path.unlink()
        else:
            landing = Landing(settings)
            landing.open()
            inbox = landing.inbox / results.path.name
            epoch = known_epoch(settings, broker)
            if epoch > 1:
                described = inbox.with_name(f"{inbox.name}.yaml")
                described.write_text(f"source: {source_of(broker, epoch)}\n")
            results.path = Path(shutil.move(results.path, inbox))


def _brokers_in_a_row(choice: Choice) -> int:
    return max(int(experiments()[name].fixed.get("brokers", 1)) for name in choice.experiments)
