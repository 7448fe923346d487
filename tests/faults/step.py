"""One step of the pipeline as a process of its own, on the home in `TWIN_HOME`: what a task of a DAG does."""

from __future__ import annotations

import sys
from collections.abc import Callable

from twin.app import pipeline
from twin.app.ingesting import files_to_read, read_and_stage
from twin.core.settings import Settings


def ingest(settings: Settings) -> object:
    staged = [str(read_and_stage(settings, one)["staged"]) for one in files_to_read(settings, "harness")]
    return pipeline.ingest_files(settings, staged, library=False)


STEPS: dict[str, Callable[[Settings], object]] = {
    "ingest": ingest,
    "validate": pipeline.build_features,
    "train": pipeline.train_models,
    "predict": pipeline.answer_requests,
}


if __name__ == "__main__":
    try:
        STEPS[sys.argv[1]](Settings.from_environment())
    except pipeline.NothingToDo as nothing:
        print(nothing)
