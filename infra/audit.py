"""Known vulnerabilities of what is pinned: `audit.py [COMMAND...]`.

Where the advisories cannot be reached that is said, and nothing fails: a build without a network must be
possible, and must not look like an audit. COMMAND stands in for pip-audit. Exit code 1 if a pinned package
has a known vulnerability.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_PINS = Path(__file__).resolve().parents[1] / "constraints.txt"
_PIP_AUDIT = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--format", "json"]
_QUIETLY = ["--progress-spinner", "off", "--timeout", "3"]
# hundreds of packages are asked for one by one; whether anybody answers is seen with the first
_FIRST_SECONDS, _ALL_SECONDS = 8, 120
UNREACHABLE = "advisories could not be reached: nothing was audited"


def _asked(command: list[str], pins: list[str], seconds: float) -> list[dict[str, Any]]:
    """What is said of each package that is known there; nothing where nobody answers."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(pins) + "\n")
        file.flush()
        try:
            done = subprocess.run(  # noqa: S603 our own tool, or what a test puts in its place
                [*command, *_QUIETLY, "--requirement", file.name],
                capture_output=True,
                text=True,
                check=False,
                timeout=seconds,
            )
            told = json.loads(done.stdout)["dependencies"]
            return [one for one in told if "skip_reason" not in one]
        except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
            return []


def main(command: list[str]) -> int:
    command = command or _PIP_AUDIT
    pins = _PINS.read_text().splitlines()
    reachable = _asked(command, [one for one in pins if one.startswith("pip==")], _FIRST_SECONDS)
    told = _asked(command, pins, _ALL_SECONDS) if reachable else []
    if not told:
        print(UNREACHABLE)
        return 0
    vulnerable = {one["name"]: one for one in told if one.get("vulns")}
    for name, one in sorted(vulnerable.items()):
        for vulnerability in one["vulns"]:
            fixed = ", ".join(vulnerability.get("fix_versions", [])) or "no version yet"
            print(f"{name} {one['version']}: {vulnerability['id']}, fixed in {fixed}")
    print(f"{len(told)} of {len(pins)} pins audited, {len(vulnerable)} with known vulnerabilities")
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
