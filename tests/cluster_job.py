"""A job that waits in its middle, for the tests of a cluster: `python cluster_job.py FOLDER TASKS`.

Each task leaves a file named by itself and its worker, and goes on when there is one called `go`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from features.session import running_spark
from twin.core.settings import Settings


def main(folder: Path, tasks: int) -> None:
    def held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import twin  # a worker has the packages

        worker = os.getsid(0)
        for batch in batches:
            (task,) = batch.column(0).to_pylist()
            (folder / f"{task}.{worker}").touch()
            deadline = time.monotonic() + 60
            while not (folder / "go").exists():
                if time.monotonic() > deadline:
                    raise TimeoutError("nobody said go")
                time.sleep(0.05)
            row = {"task": task, "worker": worker, "python": sys.executable, "package": twin.__file__}
            yield pa.RecordBatch.from_pylist([row])

    with running_spark(Settings.from_environment()) as spark:
        schema = "task long, worker long, python string, package string"
        rows = spark.range(0, tasks, 1, tasks).mapInArrow(held, schema).collect()
        told = {
            "rows": [row.asDict() for row in rows],
            "executor_memory": spark.sparkContext.getConf().get("spark.executor.memory"),
        }
        (folder / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
