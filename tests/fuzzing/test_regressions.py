"""What fuzzing found once stays found, and its targets read what they are meant to read."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from .targets import Target, targets
from .trying import fault, smaller

REGRESSIONS = Path(__file__).parent / "regressions"


def slug(name: str) -> str:
    return re.sub(r"[^a-z]+", "-", name).strip("-")


@cache
def _targets() -> dict[str, Target]:
    return {slug(name): target for name, target in targets().items()}


@pytest.mark.parametrize(
    "path", sorted(REGRESSIONS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_an_input_that_once_failed_is_read_or_refused(path):
    assert fault(_targets()[path.parent.name], path.read_bytes()) is None


def test_every_target_reads_one_of_its_seeds():
    """A target that refuses whatever it gets would try nothing."""
    refusing = []
    for name, target in _targets().items():
        values = 0
        for seed in target.seeds:
            assert fault(target, seed, seconds=60) is None, name
            try:
                target.run(seed)
                values += 1
            except target.refusals:
                continue
        if not values:
            refusing.append(name)
    assert refusing == []


def test_a_planted_fault_and_a_planted_hang_are_found():
    def read(raw: bytes) -> None:
        if b"!" in raw:
            raise KeyError(raw)
        while b"?" in raw:
            pass

    planted = Target(read, (ValueError,), [b"x"])
    assert fault(planted, b"x") is None
    assert fault(planted, b"a!b") == "crash: KeyError in no line of ours"
    assert "hang" in str(fault(planted, b"?", seconds=0.2))
    assert smaller(b"many words ! and more", lambda raw: fault(planted, raw) is not None) == b"!"
