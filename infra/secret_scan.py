"""No key or password in a commit: `secret_scan.py [FILE...]` looks through tracked files, without a network.

What looks like one and is none stands in `known_secrets.json`: by file, the digest of the words and why they
are harmless. A file that was clean is not looked at again until it changes.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
_KNOWN = Path(__file__).with_name("known_secrets.json")
_CLEAN = PROJECT / ".venv" / ".no-secrets"
_NOT_TEXT = (".png", ".gif", ".parquet")
# would ask the services whether a key works
_ASKING = "detect_secrets.filters.common.is_ignored_due_to_verification_policies"


def found_in(files: Iterable[Path]) -> list[str]:
    """`file:line: kind (digest)` of everything that looks like a secret and is not known to be harmless."""
    from detect_secrets import SecretsCollection
    from detect_secrets.settings import default_settings

    known: dict[str, dict[str, str]] = json.loads(_KNOWN.read_text())
    told = []
    with default_settings() as settings:
        settings.disable_filters(_ASKING)
        for file in files:
            name = str(file.relative_to(PROJECT)) if file.is_relative_to(PROJECT) else str(file)
            seen = SecretsCollection()
            seen.scan_file(str(file))
            told += [
                f"{name}:{one.line_number}: {one.type} ({one.secret_hash})"
                for _, one in seen
                if one.secret_hash not in known.get(name, {})
            ]
    return told


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607 whichever git made the checkout
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    files = [PROJECT / name for name in listed.split("\0") if name and not name.endswith(_NOT_TEXT)]
    # digests of what is harmless look like keys themselves
    return [file for file in files if file.is_file() and file != _KNOWN]


def _stamp(file: Path) -> str:
    """Of a file, and of what it was looked at with."""
    tool = version("detect-secrets").encode() + Path(__file__).read_bytes() + _KNOWN.read_bytes()
    return hashlib.sha256(tool + file.read_bytes()).hexdigest()


def main(arguments: list[str]) -> int:
    clean = set(_CLEAN.read_text().split()) if _CLEAN.exists() else set()
    stamps = {file: _stamp(file) for file in map(Path, arguments)} or {one: _stamp(one) for one in tracked()}
    told = {file: found_in([file]) for file, stamp in stamps.items() if stamp not in clean}
    if _CLEAN.parent.is_dir() and not arguments:
        _CLEAN.write_text("\n".join(stamp for file, stamp in stamps.items() if not told.get(file)))
    lines = [line for some in told.values() for line in some]
    print("\n".join(lines) or f"no secret in {len(stamps)} files ({len(told)} of them changed)")
    if lines:
        print(f"{len(lines)} look like secrets; what is none goes into infra/{_KNOWN.name}", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
