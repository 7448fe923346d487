"""Logs of MQ-CPH: `rate=2461.00,threads=3` per interval, in the end
`totalIterations=1032,totalSeconds=305.09,avgRate=3.38`."""

from __future__ import annotations

import re

from twin.sources.harness.iteration_log import iteration_log

_LATENCIES = ("avg_latency(uSec)", "max_latency(uSec)", "min_latency(uSec)")

FORMAT = iteration_log(
    "mqcph",
    intervals=[("rate", "threads"), ("rate", "threads", *_LATENCIES)],
    metrics={"totalIterations": "messages", "totalSeconds": "run_s", "avgRate": "average_msgs_per_s"},
    summary=re.compile(r".*totalIterations=[^=]+,totalSeconds=.*"),
)
