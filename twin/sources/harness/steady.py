"""Where a run was steady, what it amounts to there, and whether to believe it.

The rule: the level is the median of the run's middle half. An interval belongs to it that lies within three
scaled median deviations of that half, or within 5% where a run hardly varies. The steady state goes from the
first interval that belongs to the level together with its successor to the last that does together with its
predecessor: what lies before is warm-up, what lies after ramp-down. Where the tool prints its threads, only
intervals from the first to the last with all of them are looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from twin.core.runs import Latencies, Verdict

Numbers = npt.NDArray[np.float64]

# standard deviations of a normal scatter, told by its median deviation
_FAR, _MAD = 3.0, 1.4826
_HARDLY = 0.05
# fewer intervals tell no mean
_FEWEST = 5
# judged: what a planner would call another rate
_DRIFT, _VARIATION = 0.10, 0.25
# of the rate that was asked for: less is another load than the one that was to be measured
REACHED = 0.99
# a printed rate is rounded, and an interval ends a little late
_MESSAGES_OFF = 0.01
_LATENCIES = tuple(Latencies.model_fields)
_EXTREMES = {"latency_min_ms": np.min, "latency_max_ms": np.max}


@dataclass(frozen=True)
class _Window:
    first: int
    last: int

    @property
    def slice(self) -> slice:
        return slice(self.first, self.last + 1)

    def __len__(self) -> int:
        return self.last - self.first + 1


def steady_state(
    samples: pa.Table, requested_msgs_per_s: float | None, printed: float | None
) -> dict[str, Any]:
    """The columns of a `SteadyState`; `printed` is the rate of the run's summary."""
    columns = {
        name: samples[name].to_numpy() for name in samples.column_names if samples[name].null_count == 0
    }
    rates = columns.get("rate_msgs_per_s")
    if rates is None and "rate_msgs_per_s" in samples.column_names:
        rates = np.nan_to_num(samples["rate_msgs_per_s"].to_numpy(zero_copy_only=False))
    if rates is None or not len(rates):
        return _by_summary(0, requested_msgs_per_s, printed)
    window = _window(rates, columns.get("threads"))
    found: dict[str, Any] = {
        "samples": len(rates),
        "clock_steps_back": _steps_back(columns.get("at_s")),
        "messages_off": _messages_off(rates, columns),
        "samples_digest": _digest(samples),
    }
    if window is None or len(window) < _FEWEST:
        return found | _by_summary(len(rates), requested_msgs_per_s, printed, idle=not rates.any())
    found |= _means(window, rates, columns)
    found |= {
        "steady_samples": len(window),
        "steady_first_line": int(columns["line"][window.first]),
        "steady_last_line": int(columns["line"][window.last]),
        "estimator": "steady_mean",
    }
    return found | _judged(found, requested_msgs_per_s)


def _window(rates: Numbers, threads: npt.NDArray[np.int64] | None) -> _Window | None:
    low, high = 0, len(rates)
    if threads is not None and threads.min() != threads.max():
        (all_of_them,) = np.nonzero(threads == threads.max())
        low, high = int(all_of_them[0]), int(all_of_them[-1]) + 1
    core = rates[low:high]
    quarter = len(core) // 4
    middle = np.sort(core[quarter : len(core) - quarter])
    level = _median(middle)
    if level <= 0:
        return None
    off = np.abs(core - level)
    tolerance = max(_FAR * _MAD * _median(np.sort(off[quarter : len(core) - quarter])), _HARDLY * level)
    inside = off <= tolerance
    (pairs,) = np.nonzero(inside[1:] & inside[:-1])
    return _Window(low + int(pairs[0]), low + int(pairs[-1]) + 1) if len(pairs) else None


def _means(window: _Window, rates: Numbers, columns: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    inside = rates[window.slice]
    seconds = columns.get("interval_s")
    weights = seconds[window.slice] if seconds is not None and (seconds > 0).all() else None
    mean = _mean(inside, weights)
    ordered = np.sort(inside)
    steps = np.arange(len(inside)) - (len(inside) - 1) / 2
    slope = float(steps @ inside) / float(steps @ steps)
    found: dict[str, Any] = {
        "rate_msgs_per_s": mean,
        "rate_variation": float(np.sqrt(np.mean((inside - mean) ** 2))) / mean,
        "rate_p5_msgs_per_s": _quantile(ordered, 0.05),
        "rate_p50_msgs_per_s": _quantile(ordered, 0.5),
        "rate_p95_msgs_per_s": _quantile(ordered, 0.95),
        "drift": slope * (len(inside) - 1) / mean,
    }
    for name in ("sent_msgs_per_s", "cpu_busy_pct"):
        if name in columns:
            found[name] = _mean(columns[name][window.slice], weights)
    messages = inside if weights is None else inside * weights
    for name in _LATENCIES:
        if name in columns:
            latencies = columns[name][window.slice]
            extreme = _EXTREMES.get(name)
            found[name] = float(extreme(latencies)) if extreme else _mean(latencies, messages)
    return found


def _judged(found: Mapping[str, Any], requested: float | None) -> dict[str, Any]:
    share = found["rate_msgs_per_s"] / requested if requested else None
    # what a straight line through this many intervals that only scatter may rise by
    chance = _FAR * found["rate_variation"] * np.sqrt(12 / found["steady_samples"])
    verdict: Verdict = "stable"
    if found["clock_steps_back"]:
        verdict = "clock_went_back"
    elif 2 * found["steady_samples"] < found["samples"]:
        verdict = "too_short"
    elif share is not None and share < REACHED:
        verdict = "short_of_request"
    elif abs(found["drift"]) > max(_DRIFT, chance):
        verdict = "drifting"
    elif found["rate_variation"] > _VARIATION:
        verdict = "varying"
    return {"achieved_share": share, "verdict": verdict}


def _by_summary(
    samples: int, requested: float | None, printed: float | None, idle: bool = False
) -> dict[str, Any]:
    """Without a steady state only what the tool printed in the end tells a rate."""
    verdict: Verdict = "summary_only" if printed else "idle" if idle or printed == 0 else "too_short"
    found = {"samples": samples, "steady_samples": 0, "verdict": verdict}
    if not printed:
        return found
    return found | {
        "rate_msgs_per_s": printed,
        "achieved_share": printed / requested if requested else None,
    }


def _steps_back(at: Numbers | None) -> int:
    return 0 if at is None else int(np.count_nonzero(np.diff(at) < 0))


def _messages_off(rates: Numbers, columns: Mapping[str, npt.NDArray[Any]]) -> int:
    if "messages" not in columns or "interval_s" not in columns:
        return 0
    done = rates * columns["interval_s"]
    off = np.abs(done - columns["messages"]) > np.maximum(_MESSAGES_OFF * columns["messages"], 1.0)
    return int(np.count_nonzero(off))


def _digest(samples: pa.Table) -> str:
    """Of what was measured; the clock and the lines are its run's own."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted({*samples.column_names} - {"line", "at_s"}):
        digest.update(name.encode())
        digest.update(samples[name].to_numpy(zero_copy_only=False).tobytes())
    return digest.hexdigest()


def _mean(values: Numbers, weights: Numbers | None) -> float:
    if weights is None or not (total := float(weights.sum())):
        return float(values.mean())
    return float(values @ weights) / total


def _median(ordered: Numbers) -> float:
    return _quantile(ordered, 0.5)


def _quantile(ordered: Numbers, share: float) -> float:
    """Linear between two values of a sorted array."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (place - below) * (ordered[above] - ordered[below]))
