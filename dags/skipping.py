"""A task with nothing to do is skipped: nothing that waits for its asset is started."""

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowSkipException


@contextmanager
def skipped_when_idle() -> Iterator[None]:
    from twin.app.pipeline import NothingToDo

    try:
        yield
    except NothingToDo as reason:
        raise AirflowSkipException(str(reason)) from reason
