"""One period of keeping the twin in step with a live broker: probe, compare, and recalibrate where needed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from twin.app.harnessing import landing
from twin.app.watching import name_of, remember, remembered
from twin.core.configuration import Configuration
from twin.core.prediction import Prediction
from twin.core.settings import Settings
from twin.harness.experiments import STANDARD, Plan, Point, experiments, scales
from twin.harness.machine import speed
from twin.harness.running import Bench

if TYPE_CHECKING:
    from training.model import TwinModel
    from training.recalibration import Policy
    from training.sync import Watched

# experiments of one system, all quick to set up: where probes are chosen from
_PROBED = ("put_get", "batch", "window", "prefetch")
_INTERVALS = 10


@dataclass(frozen=True)
class Watch:
    """What to watch, and how."""

    broker: str
    address: str | None = None
    probes: int = 3
    policy: Policy = "person"
    # how long a probe is measured
    scale: str = "quick"


@dataclass(frozen=True)
class Report:
    """Of one period, for a person."""

    broker: str
    at: str
    status: str
    measured_pct: float | None
    message: str
    version: str | None = None

    def told(self) -> dict[str, Any]:
        return dict(vars(self))


def synchronise(settings: Settings, watch: Watch, bench: Bench | None = None) -> Report:
    """Raises BrokerProblem where the broker is not there, NoChampion where there is nothing to compare with.
    `bench`: brokers that run already."""
    if bench is not None:
        return _period(settings, watch, bench)
    with Bench({watch.broker: watch.address}) as own:
        return _period(settings, watch, own)


def _period(settings: Settings, watch: Watch, bench: Bench) -> Report:
    from training.recalibration import Refused
    from training.registry import Registry, champion_model
    from training.sync import after_period, compared_with, probes_for, proposed, registered, watched

    registry, model = Registry(settings), champion_model(settings)
    broker = bench.brokers[watch.broker]
    champion = str(registry.champion().version)
    before = compared_with(remembered(settings, broker) or watched(name_of(broker), champion), champion)
    configurations = probes_for(before, model, _candidates(bench, watch.broker), watch.probes)
    if not configurations:
        reason = (
            f"the champion has no answer for {broker.product}: measure some of it with `twin harness run`, "
            "take that in and train"
        )
        return Report(before.state.broker, _now(), "unknown", None, reason)
    at = _now()
    rates, scatters, speeds = _measured(settings, bench, watch, configurations)
    usual = before.speed or sum(speeds) / len(speeds)
    told = [
        rate and rate * (usual / fast) ** share
        for rate, fast, share in zip(rates, speeds, _processor_shares(model, configurations), strict=True)
    ]
    now = after_period(
        before.model_copy(update={"speed": usual}), model, at, configurations, told, scatters
    )  # fmt: skip
    version, message = None, _told(now)
    found = None if now.waiting_version else proposed(now, model)
    if isinstance(found, Refused):
        message = f"{message}; not recalibrated yet: {found.reason}"
    elif found is not None:
        now, version, reason = registered(registry, found, now, watch.policy)
        message = f"{message}; {reason}"
    remember(settings, now)
    latest = now.state.latest
    return Report(
        now.state.broker, at, now.state.status, None if latest is None else latest.percent, message, version
    )


def _measured(
    settings: Settings, bench: Bench, watch: Watch, configurations: list[Configuration]
) -> tuple[list[float | None], list[float | None], list[float]]:
    """Rates, how sure each run is of its own, and how fast the machine was around it. The runs go to the
    inbox like any others."""
    import numpy as np

    how, broker = scales()[watch.scale], watch.broker
    plan = Plan(how.warm_up_s, how.length_s, how.length_s / _INTERVALS)
    rates: list[float | None] = []
    scatters: list[float | None] = []
    speeds: list[float] = []
    name = f"probes-{broker}-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
    with landing(settings, name, bench.brokers[broker]) as results:
        for configuration in configurations:
            before = speed()
            outcome, run = bench.once(Point("probe", "putting", broker, configuration, plan), 1, results)
            speeds.append((before + speed()) / 2)
            samples = np.array([sample["rate_msgs_per_s"] for sample in run.meter.samples])
            rate = float(samples.mean()) if outcome.problem is None and len(samples) else 0.0
            rates.append(rate or None)
            # of that mean
            scatters.append(float(samples.std() / rate / np.sqrt(len(samples))) if rate else None)
    return rates, scatters, speeds


def _processor_shares(model: TwinModel, configurations: list[Configuration]) -> list[float]:
    """How far each rate goes with the processors' speed, which is not the broker's doing: as far as the
    processors are busy. What waits for something else is as fast on a slow machine."""
    shares = []
    for one in model.predict(configurations):
        busy = json.loads(one.utilisation or "{}") if isinstance(one, Prediction) else {}
        shares.append(min(float(busy.get("cpu", 0.0)), 1.0))
    return shares


def _candidates(bench: Bench, broker: str) -> list[Configuration]:
    known = experiments()
    found = {
        point.configuration.configuration_id: point.configuration
        for name in _PROBED
        if broker in known[name].brokers
        for point in known[name].points(name, bench.brokers[broker], STANDARD)
    }
    return list(found.values())


def _told(now: Watched) -> str:
    state = now.state
    if state.latest is not None and state.latest.left_out:
        return f"this period does not count: {state.latest.left_out}"
    if state.alarm is not None:
        return str(state.alarm)
    if state.status == "learning":
        return f"learning what is usual: {state.baseline.periods} of {state.learned} periods"
    return "in step"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
