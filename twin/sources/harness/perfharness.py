"""Logs of PerfHarness and JMSPerfHarness, whose lines depend on the statistics module that was chosen:

- rolling: `rateR=16648.00,threads=10`, in the end the rate of the best window, `maxrateR`;
- basic: `rate=16836.00,total messages=33672,Snapshot period=2,threads=10`, in the end the sum of what the
  threads did, each in its own time, `totalRate`;
- response time: `tps=..,avgResponse(micros)=..,threads=..`.
"""

from __future__ import annotations

import re

from twin.sources.harness.iteration_log import iteration_log

FORMAT = iteration_log(
    "perfharness",
    intervals=[
        ("rateR", "threads"),
        ("rate", "total messages", "Snapshot period", "threads"),
        ("tps", "avgResponse(micros)", "threads"),
    ],
    metrics={
        "totalIterations": "messages",
        "avgDuration": "run_s",
        "totalRate": "thread_sum_msgs_per_s",
        "maxrateR": "best_window_msgs_per_s",
    },
    summary=re.compile(r".*totalIterations=[^=]+,avgDuration=.*"),
)
