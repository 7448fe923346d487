"""Logs of MQ-CPH: `rate=2461.00,threads=3` per interval, in the end
`totalIterations=1032,totalSeconds=305.09,avgRate=3.38`."""

from __future__ import annotations

import re

from twin.sources.harness.iteration_log import iteration_log

FORMAT = iteration_log(
    "mqcph",
    # the mean over the whole run
    rates={"avgRate": "throughput_msgs_per_s"},
    interval=re.compile(r"(?:id=\d+,)?rate=[^=]+,threads=\d+(?:,.*)?"),
    summary=re.compile(r".*totalIterations=[^=]+,totalSeconds=.*"),
)
