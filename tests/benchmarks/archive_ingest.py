"""Our ingest of a folder of logs, timed by its parts: `python archive_ingest.py FOLDER`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from features.lake import Lake
from features.session import running_spark
from twin.app import archiving
from twin.core.settings import Settings
from twin.sources.files import files_in


def main(folder: Path) -> None:
    settings = Settings.from_environment()
    lake = Lake(settings)
    expectations_s = 0.0
    judge = archiving._verdict

    def timed(*arguments: Any) -> str:
        nonlocal expectations_s
        started = time.perf_counter()
        try:
            return judge(*arguments)
        finally:
            expectations_s = time.perf_counter() - started

    archiving._verdict = timed
    started = time.perf_counter()
    with running_spark(settings, "bench") as spark:
        spark.range(1).count()
        ready = time.perf_counter()
        taken = archiving.take_runs(settings, lake, spark, files_in([folder]))
        done = time.perf_counter()
    print(
        json.dumps(
            {
                "samples": taken.samples,
                "runs": taken.runs,
                "start_s": round(ready - started, 2),
                "seconds": round(done - ready - expectations_s, 2),
                "expectations_s": round(expectations_s, 2),
                "samples_per_s": round(taken.samples / (done - ready - expectations_s)),
                "expectations": taken.expectations,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
