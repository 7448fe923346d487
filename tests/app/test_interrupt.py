"""Ctrl-C in the middle of the main job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from twin.app.interrupts import remembered_interrupt


class Destroyed:
    """Its end is a moment at which Python can raise nothing."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_that_python_drops_is_raised_later(monkeypatch):
    dropped = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: dropped.append(lost.exc_type))
    with remembered_interrupt() as raise_lost:
        raise_lost()
        one = Destroyed()
        del one
        assert dropped == [KeyboardInterrupt]
        with pytest.raises(KeyboardInterrupt):
            raise_lost()


@pytest.mark.long
def test_an_interrupted_run_leaves_no_process_behind(tmp_path, started_for):
    home = tmp_path / "home"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    run = subprocess.Popen(
        [sys.executable, "-m", "twin.app", "run"],
        env=environment | {"TWIN_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert "Airflow is up" in run.stdout.readline()
        # long enough for a machine that has other tests to run
        deadline = time.monotonic() + 180
        while not any("SparkSubmit" in command for command in started_for(home)):
            assert time.monotonic() < deadline, "no task started Spark"
            time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=60) == 130
        assert started_for(home) == []
    finally:
        # killed, it would leave its Airflow to the tests that follow
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
            run.wait(timeout=60)
