"""A broker watched over time: probes where the twin is least sure, an alarm when the two part, and a new
calibration that a person or a policy approves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Annotated, Any

from training.correction import NO_CORRECTION
from training.divergence import State, begun, renewed, updated
from training.loosening import loosened
from training.model import TwinModel
from training.periods import Period, probed
from training.probing import least_sure
from training.recalibration import Policy, Recalibration, Refused, approve, recalibrated
from training.registry import Registration, Registry
from twin.calibration.observations import Observation
from twin.core.columns import Columns
from twin.core.configuration import Configuration
from twin.core.fields import Row, quantity
from twin.core.prediction import THROUGHPUT, Excuse
from twin.systems.registry import BY_FAMILY

# what a recalibration can need of the past: an alarm is found within a few periods, or it is none
_REMEMBERED = 30


class Probed(Row):
    """A rate that was measured in a period."""

    columns: Annotated[str, quantity("Flat columns of the configuration: a JSON object")]
    rate_msgs_per_s: float | None

    @property
    def configuration(self) -> Configuration:
        return Configuration.from_flat(json.loads(self.columns))


class PastPeriod(Row):
    at: str
    probes: tuple[Probed, ...]


class Watched(Row):
    """One broker: plain data, kept between periods."""

    state: State
    # of the champion that it is compared with
    version: str
    past: tuple[PastPeriod, ...] = ()
    # of the machine when the first probes were measured: rates are told as if it still were
    speed: float | None = None
    # calibrations that were approved; figures from before the last describe another broker
    epoch: int = 1
    # a calibration that waits for a person
    waiting_version: str | None = None


def watched(broker: str, version: str) -> Watched:
    return Watched(state=begun(broker), version=version)


def compared_with(before: Watched, version: str) -> Watched:
    """What is usual was learned beside one champion: beside another it is learned anew."""
    if before.waiting_version == version:
        return settled(before, version)
    if before.version == version:
        return before
    return Watched(state=renewed(before.state), version=version, speed=before.speed, epoch=before.epoch)


def probes_for(
    now: Watched, model: TwinModel, candidates: Sequence[Configuration], count: int
) -> list[Configuration]:
    """Where the twin is least sure, of what it has an answer for: the same in every period as long as all is
    quiet, and after an alarm where the change shows best. All candidates are of one system."""
    answers = model.predict(candidates)
    known = [one for one, said in zip(candidates, answers, strict=True) if not isinstance(said, Excuse)]
    if not known:
        return []
    system = BY_FAMILY[str(known[0].workload.family)]
    calibration = model.calibrations.get(system.name)
    correction = model.corrections.get((system.name, THROUGHPUT), NO_CORRECTION)
    measured: list[Configuration] = []
    if now.state.alarm is not None and calibration is not None:
        calibration = loosened(system, calibration, Columns.of(known))
        measured = [one.configuration for period in _since(now) for one in period.probes]
        # all of them were measured: from the beginning
        if len({one.configuration_id for one in measured}) > len(known) - count:
            measured = []
    places = least_sure(system, calibration, known, count, measured, correction)
    return [known[place] for place in places]


def after_period(
    before: Watched,
    model: TwinModel,
    at: str,
    configurations: Sequence[Configuration],
    rates: Sequence[float | None],
    scatters: Sequence[float | None] | None = None,
) -> Watched:
    """`scatters`: of each run's own samples, where they are known."""
    period = Period(at=at, probes=probed(model, configurations, rates, scatters, doubted=False))
    probes = tuple(
        Probed(
            columns=json.dumps({name: value for name, value in one.flat().items() if value is not None}),
            # what does not count here is not learned from either
            rate_msgs_per_s=None if probe.flaw else probe.measured,
        )
        for one, probe in zip(configurations, period.probes, strict=True)
    )
    past = (*before.past, PastPeriod(at=at, probes=probes))[-_REMEMBERED:]
    return before.model_copy(update={"state": updated(before.state, period), "past": past})


def proposed(now: Watched, model: TwinModel) -> Recalibration | Refused | None:
    """A new calibration once the two have parted; None as long as they have not."""
    if now.state.alarm is None:
        return None
    return recalibrated(model, [_figures(now, one) for one in _since(now)], now.state.noise_factor)


def _since(now: Watched) -> Sequence[PastPeriod]:
    """Periods since the change, as far as they are remembered."""
    times = [one.at for one in now.past]
    alarm = now.state.alarm
    first = times.index(alarm.since) if alarm is not None and alarm.since in times else 0
    return now.past[first:]


def _figures(now: Watched, period: PastPeriod) -> list[Observation]:
    name = f"probe:{period.at}"
    return [
        Observation(f"{name}:{at}", now.state.broker, one.configuration, THROUGHPUT, rate, "probes")
        for at, one in enumerate(period.probes)
        if (rate := one.rate_msgs_per_s) is not None
    ]


def registered(
    registry: Registry, found: Recalibration, now: Watched, policy: Policy
) -> tuple[Watched, str | None, str]:
    """The version that it became, if it did, and why. A person is asked by a version that waits; what the
    policy does not approve is proposed again in the next period, with more to go by. What the champion was
    examined on stands: the demands of one broker have moved, nothing else was learned."""
    approved, reason = approve(found, policy)
    if not approved and policy == "auto":
        return now, None, f"not approved yet: {reason}"
    champion = registry.champion()
    alarm = now.state.alarm
    assert alarm is not None
    changed = {
        f"factor/{one.parameter}".replace("[", "/").replace("]", ""): one.factor
        for one in found.changes
        if one.is_clear
    }
    version = registry.register(
        found.model,
        Registration(
            key=_key(found),
            parameters={
                "recalibrated_from": str(champion.version),
                "broker": found.broker,
                "diverged_since": alarm.since,
                "figures": found.rows,
                "policy": policy,
            },
            metrics={
                "shift_pct": alarm.percent,
                "median_error_before_pct": found.newest_before.median_percent,
                "median_error_after_pct": found.newest_after.median_percent,
                **{_metric_name(name): value for name, value in changed.items()},
            },
            exam_rows=registry.exam_rows(champion),
            exam_scores=registry.exam_scores(champion),
            card=f"# Recalibrated: {found.broker}\n\n{alarm}\n\n{found}\n",
            chart=None,
            example=_example(now),
        ),
    )
    if not approved:
        registry.remark(version, reason)
        waiting = now.model_copy(update={"waiting_version": version})
        return waiting, version, f"version {version} waits for `twin models promote`, {reason}"
    registry.promote(version, reason)
    return settled(now, version), version, f"version {version} is champion now: {reason}"


def settled(now: Watched, version: str) -> Watched:
    """After an approved calibration: what is usual is learned anew."""
    return Watched(state=renewed(now.state), version=version, speed=now.speed, epoch=now.epoch + 1)


def _metric_name(name: str) -> str:
    """MLflow takes letters, digits and a few marks."""
    return "".join(mark if mark.isalnum() or mark in "_-./ " else "_" for mark in name)


def _key(found: Recalibration) -> str:
    calibration = found.model.calibrations[found.system]
    return hashlib.sha256(f"recalibrated|{calibration.fitted_on}".encode()).hexdigest()[:16]


def _example(now: Watched) -> Any:
    from training.training import example_of

    return example_of(now.past[-1].probes[0].configuration)
