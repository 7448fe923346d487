"""What `make lint` looks for in commits and pins, with planted cases."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from twin.core.settings import PROJECT

SCAN, AUDIT = PROJECT / "infra" / "secret_scan.py", PROJECT / "infra" / "audit.py"


def _run(script, *arguments):
    return subprocess.run(
        [sys.executable, str(script), *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_a_planted_secret_is_found(tmp_path):
    # put together here, or this file would be found itself
    key = "AKIA" + "QYLPMN5HHHFPZAM2"
    planted, plain = tmp_path / "planted.py", tmp_path / "plain.py"
    planted.write_text(f"one = 1\nkey = '{key}'\n")
    plain.write_text("one = 1\n")
    found = _run(SCAN, planted, plain)
    assert found.returncode == 1
    assert f"{planted}:2: AWS Access Key" in found.stdout
    assert key not in found.stdout + found.stderr
    assert _run(SCAN, plain).returncode == 0


def test_what_is_known_to_be_harmless_says_why():
    known = json.loads((PROJECT / "infra" / "known_secrets.json").read_text())
    assert all(reason for of_file in known.values() for reason in of_file.values())
    assert [name for name in known if not (PROJECT / name).is_file()] == []


@pytest.fixture
def stand_in(tmp_path):
    """For pip-audit, whose advisories may not be in reach here: it says what it is told to say."""

    def made(said: str, code: int = 0) -> list[str]:
        script = tmp_path / "stand_in.py"
        script.write_text(f"print({said!r})\nraise SystemExit({code})\n")
        return [sys.executable, str(script)]

    return made


def test_a_vulnerable_pin_fails(stand_in):
    vulns = [{"id": "PYSEC-0", "fix_versions": ["2.0"]}]
    said = {"dependencies": [{"name": "some", "version": "1.0", "vulns": vulns}]}
    done = _run(AUDIT, *stand_in(json.dumps(said), 1))
    assert done.returncode == 1
    assert "some 1.0: PYSEC-0, fixed in 2.0" in done.stdout


def test_sound_pins_pass(stand_in):
    said = {"dependencies": [{"name": "some", "version": "1.0", "vulns": []}]}
    done = _run(AUDIT, *stand_in(json.dumps(said)))
    assert done.returncode == 0
    assert "0 with known vulnerabilities" in done.stdout


@pytest.mark.parametrize(
    "said",
    ["", "no connection", json.dumps({"dependencies": [{"name": "some", "skip_reason": "not found"}]})],
)
def test_advisories_out_of_reach_are_told_and_fail_nothing(stand_in, said):
    done = _run(AUDIT, *stand_in(said, 1))
    assert done.returncode == 0
    assert done.stdout.strip() == "advisories could not be reached: nothing was audited"
