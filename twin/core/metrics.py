"""Every quantity that a report or a harness measures: one name, one unit, one admitted range."""

from __future__ import annotations

from twin.core.fields import Field

_DECLARED = (
    # rates
    Field("throughput_msgs_per_s", "number", "Round trips or flow invocations per second", "msgs/s", 0, True),
    # processor
    Field("cpu_busy_pct", "number", "Busy share of all processors", "%", 0, maximum=100),
    Field("cpu_ms_per_msg", "number", "Processor time of all processes per message", "ms", 0, True),
    # shares and ratios
    Field("overhead_pct", "number", "How much slower than without", "%"),
    Field("claim_holds", "number", "Whether a comparison in words agrees with the figures", None, 0, maximum=1),
    # elapsed times
    # counts
    # storage
    # machines and settings
)

METRICS: dict[str, Field] = {metric.name: metric for metric in _DECLARED}
