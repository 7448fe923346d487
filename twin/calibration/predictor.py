"""The analytic predictor: physics with fitted demands, behind the Predictor protocol."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

from twin.calibration.calibration import Calibration, stated
from twin.calibration.domain import outside, too_far
from twin.calibration.evaluating import Evaluated
from twin.core.configuration import Configuration
from twin.core.prediction import Excuse, Prediction
from twin.queueing.network import BadNetwork
from twin.systems.model import System
from twin.systems.registry import BY_FAMILY
from twin.systems.transfer import Transfer, transfer

PREDICTOR = "analytic"
_INNER, _OUTER = NormalDist().inv_cdf(0.75), NormalDist().inv_cdf(0.95)

Answers = dict[str, Prediction | Excuse]


class AnalyticPredictor:
    """`predict` answers for one metric; `metrics` for several, or for all that a system explains."""

    def __init__(
        self,
        calibrations: Mapping[str, Calibration],
        table_version: int = 0,
        target: str = "throughput_msgs_per_s",
    ) -> None:
        self._calibrations = calibrations
        self._table_version = table_version
        self._target = target

    def predict(self, configurations: Sequence[Configuration]) -> list[Prediction | Excuse]:
        return [answers[self._target] for answers in self.metrics(configurations, [self._target])]

    def metrics(
        self, configurations: Sequence[Configuration], metrics: Sequence[str] | None = None
    ) -> list[Answers]:
        places: dict[str, list[int]] = {}
        for place, one in enumerate(configurations):
            places.setdefault(_system_of(one).name, []).append(place)
        found: dict[int, Answers] = {}
        for at in places.values():
            asked = [configurations[place] for place in at]
            system = _system_of(asked[0])
            wanted = [target.metric for target in system.told] if metrics is None else metrics
            found |= dict(zip(at, self._of_system(system, asked, wanted), strict=True))
        return [found[place] for place in range(len(configurations))]

    def _of_system(
        self, system: System, configurations: Sequence[Configuration], metrics: Sequence[str]
    ) -> list[Answers]:
        calibration = self._calibrations.get(system.name)
        if calibration is None and not system.parameters:
            calibration = stated(system)
        if calibration is None:
            return [_excused(f"{system.name} is not calibrated", metrics) for _ in configurations]
        not_moved = _moved(configurations, calibration).excuses
        excuses = [
            system.excuse(one) or no_rating or _too_far(system, calibration, one)
            for one, no_rating in zip(configurations, not_moved, strict=True)
        ]
        answered = [one for one, excuse in zip(configurations, excuses, strict=True) if excuse is None]
        answers = iter(self._evaluated(system, calibration, answered, metrics))
        return [next(answers) if excuse is None else _excused(excuse, metrics) for excuse in excuses]

    def _evaluated(
        self,
        system: System,
        calibration: Calibration,
        configurations: Sequence[Configuration],
        metrics: Sequence[str],
    ) -> list[Answers]:
        if not configurations:
            return []
        try:
            evaluated = Evaluated(system, calibration, configurations, _moved(configurations, calibration))
        except BadNetwork as error:
            if len(configurations) == 1:
                return [_excused(str(error), metrics)]
            # one impossible network must not take the answers of the others with it
            return [self._evaluated(system, calibration, [one], metrics)[0] for one in configurations]
        reasons = [_outside(calibration, one) for one in configurations]
        columns = {
            metric: self._column(system, calibration, evaluated, metric, reasons) for metric in metrics
        }
        return [{name: column[at] for name, column in columns.items()} for at in range(len(configurations))]

    def _column(
        self,
        system: System,
        calibration: Calibration,
        evaluated: Evaluated,
        metric: str,
        reasons: Sequence[str | None],
    ) -> list[Prediction | Excuse]:
        target = system.target(metric)
        if target is None:
            return [_excuse(f"the model of {system.name} does not tell {metric}") for _ in reasons]
        unmeasured = evaluated.unmeasured(target)
        values, spreads = evaluated.values(target).tolist(), evaluated.spread(target).tolist()
        stations = zip(evaluated.bottlenecks(), evaluated.utilisations(), strict=True)
        found: list[Prediction | Excuse] = []
        for value, spread, reason, unknown, (bottleneck, utilisation) in zip(
            values, spreads, reasons, unmeasured, stations, strict=True
        ):
            if unknown or not (math.isfinite(value) and math.isfinite(spread)):
                found.append(_excuse(unknown or f"{metric} does not apply to this configuration"))
                continue
            found.append(
                Prediction(
                    target=metric,
                    value=target.from_scale(value),
                    lo50=target.from_scale(value - _INNER * spread),
                    hi50=target.from_scale(value + _INNER * spread),
                    lo90=target.from_scale(value - _OUTER * spread),
                    hi90=target.from_scale(value + _OUTER * spread),
                    predictor=PREDICTOR,
                    bottleneck=bottleneck,
                    utilisation=utilisation,
                    in_domain=reason is None,
                    domain_reason=reason,
                    model_version=calibration.fitted_on,
                    table_version=self._table_version,
                )
            )
        return found


def _system_of(configuration: Configuration) -> System:
    return BY_FAMILY[str(configuration.workload.family)]


def _moved(configurations: Sequence[Configuration], calibration: Calibration) -> Transfer:
    if calibration.reference is None:
        return Transfer.none(len(configurations))
    return transfer(configurations, calibration.reference)


def _too_far(system: System, calibration: Calibration, configuration: Configuration) -> str | None:
    domain = calibration.domain.get(str(configuration.workload.family))
    return None if domain is None else too_far(configuration, domain, system.reach)


def _outside(calibration: Calibration, configuration: Configuration) -> str | None:
    domain = calibration.domain.get(str(configuration.workload.family))
    return None if domain is None else outside(configuration, domain)


def _excuse(reason: str) -> Excuse:
    return Excuse(predictor=PREDICTOR, excuse=reason)


def _excused(reason: str, metrics: Sequence[str]) -> Answers:
    return {metric: _excuse(reason) for metric in metrics}
