"""The process that tries one target: `worker.py TARGET SECONDS SEED FOLDER`.

Coverage-guided: what reaches new code of ours is kept and changed further. Every fault is noted once, made
small, and the search goes on. Results stand in FOLDER/result.json, faults as files beside it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import types
from hashlib import sha256
from pathlib import Path

import atheris

TESTS = Path(__file__).resolve().parents[1]
# ours, and the parsers behind them that are written in Python
_FOLLOWED = ["twin", "features", "training", "sqlglot", "yaml", "pdfplumber", "pdfminer"]
_MOST_MB = 2_500
_MOST_INPUT = 64 * 1024


def main(name: str, seconds: float, seed: int, folder: Path) -> None:
    # a package called tests is somebody else's
    package = types.ModuleType("own_tests")
    package.__path__ = [str(TESTS)]
    sys.modules["own_tests"] = package
    with atheris.instrument_imports(include=_FOLLOWED):
        from own_tests.fuzzing.targets import targets
        from own_tests.fuzzing.trying import MOST_SECONDS, fault, smaller

        target = targets()[name]
        # much is imported at its first use only
        for raw in target.seeds:
            fault(target, raw, seconds=60)
    corpus, found = folder / "corpus", folder / "found"
    corpus.mkdir()
    found.mkdir()
    for at, raw in enumerate(target.seeds):
        (corpus / f"seed-{at}").write_bytes(raw)
    faults: dict[str, str] = {}
    tried, begun, told = 0, time.process_time(), 0.0

    def note() -> None:
        (folder / "result.json").write_text(
            json.dumps({"tried": tried, "seconds": time.process_time() - begun, "faults": faults})
        )

    def one(raw: bytes) -> None:
        nonlocal tried, told
        tried += 1
        wrong = fault(target, raw)
        if wrong is not None and wrong not in faults:
            # a hang is as long as it is: making it small would take a hundred times that
            small = (
                raw if wrong.startswith("hang") else smaller(raw, lambda less: fault(target, less) == wrong)
            )
            digest = sha256(small).hexdigest()[:12]
            (found / digest).write_bytes(small)
            faults[wrong] = digest
        now = time.process_time() - begun
        if now - told > 0.5 or now > seconds:
            told = now
            note()
        if now > seconds:
            sys.stderr.flush()
            os._exit(0)

    words = {word for raw in target.seeds for word in re.findall(rb"[A-Za-z_]{3,30}", raw)}
    words_file = folder / "words"
    words_file.write_text("".join(f'"{word.decode()}"\n' for word in sorted(words)[:500]))
    options: dict[str, object] = {
        "seed": seed,
        "max_len": _MOST_INPUT,
        "rss_limit_mb": _MOST_MB,
        # where even a signal is not heard
        "timeout": int(20 * MOST_SECONDS),
        "artifact_prefix": f"{found}/",
        "max_total_time": int(10 * seconds) + 60,
    }
    if words:
        options["dict"] = words_file
    flags = [f"-{option}={value}" for option, value in options.items()]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
