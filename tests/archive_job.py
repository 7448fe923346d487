"""Takes a folder of runs and leaves both tables as files: `python archive_job.py FOLDER OUT [held]`.

Held, each task waits in its middle for a file called `go` in OUT, and leaves one named by its worker.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from pyarrow import parquet

from features import archive
from features.lake import Lake
from features.session import running_spark
from twin.app import archiving
from twin.core.settings import Settings
from twin.core.tables import RUNS, SAMPLES


def hold(out: Path) -> None:
    """The second half of each task waits; what it wrote before is lost with a worker that is killed."""
    take = archive._Work._take

    def held(self, file, outcome, write):
        take(self, file, outcome, write)
        (out / f"{file.stem}.{os.getsid(0)}").touch()
        deadline = time.monotonic() + 60
        while not (out / "go").exists():
            if time.monotonic() > deadline:
                raise TimeoutError("nobody said go")
            time.sleep(0.05)

    archive._Work._take = held


def main(folder: Path, out: Path, held: bool) -> None:
    # what the expectations say has tests of its own, and takes its time
    archiving._verdict = lambda *_: "not asked"
    if held:
        from pyspark import cloudpickle

        # the change has to reach the workers, which have the package as it is installed
        cloudpickle.register_pickle_by_value(archive)
        hold(out)
    settings = Settings.from_environment()
    lake = Lake(settings)
    with running_spark(settings) as spark, lake.exclusive():
        archiving.take_runs(settings, lake, spark, sorted(folder.glob("*.log")))
    for table in (SAMPLES, RUNS):
        parquet.write_table(lake.arrow(table), out / f"{table.name}.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] == ["held"])
