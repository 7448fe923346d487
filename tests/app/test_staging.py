"""What killed work left behind goes with the next; what somebody works in stays."""

from __future__ import annotations

import signal
import subprocess
import sys

from twin.app.staging import abandoned, staging_folder

KILLED = """
import os, signal
from twin.app.staging import staging_folder
from twin.core.settings import Settings
with staging_folder(Settings.from_environment()) as folder:
    (folder / "half").write_text("x")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_folder_of_killed_work_is_removed_by_the_next(settings):
    killed = subprocess.run([sys.executable, "-c", KILLED], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = abandoned(settings)
    assert (left / "half").exists()
    with staging_folder(settings) as mine, staging_folder(settings) as other:
        assert not left.exists()
        assert mine.is_dir()
        assert other.is_dir()
        assert abandoned(settings) == []
    assert [*(settings.home / "staging").iterdir()] == []
