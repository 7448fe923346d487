"""A synthetic archive of MQ-CPH logs, as large as wanted: made by a seed, measured by nobody, never kept."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

# what holds for every log of a folder
SIDECAR = """os: linux
machine: synthetic
cpus: 8
mhz: 3000
product: Synthetic MQ
version: 1.0
measured_at: 2026-01-15
"""
_FEWEST, _MOST = 500, 2000
_THREADS, _BYTES = (1, 2, 4, 8, 16, 32, 64, 128), (256, 2048, 20480, 204800)
_DIGITS = 5


class Archive(NamedTuple):
    files: list[Path]
    runs: int
    samples: int
    bytes: int


class _Run(NamedTuple):
    threads: int
    message_bytes: int
    persistent: bool
    rates: npt.NDArray[np.int64]

    def printed(self) -> bytes:
        intervals, total = len(self.rates), int(self.rates.sum())
        persistence = " -pp" if self.persistent else ""
        command = (
            f"./cph -nt {self.threads} -ms {self.message_bytes} -rl {intervals} -id 1 -tc Requester -ss 1"
        )
        summary = f"totalIterations={total},totalSeconds={intervals:.2f},avgRate={total / intervals:.2f}"
        return b"".join(
            (
                f"{command}{persistence}\n".encode(),
                _interval_lines(self.rates, self.threads),
                f"{summary}\n".encode(),
            )
        )


def generate(folder: Path, samples: int, files: int, seed: int) -> Archive:
    """So many interval lines in so many logs of about the same size. The same seed gives the same bytes, and
    every log has other figures."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "archive.yaml").write_text(SIDECAR)
    paths, runs, size = [], 0, 0
    for number in range(files):
        random = np.random.default_rng((seed, number))
        path = folder / f"synthetic-{number:05d}.log"
        with path.open("wb") as log:
            log.write(f"# synthetic, seed {seed}: printed by no run\n".encode())
            for intervals in _lengths(samples // files + (number < samples % files), random):
                log.write(_run(intervals, random).printed())
                runs += 1
            size += log.tell()
        paths.append(path)
    return Archive(paths, runs, samples, size)


def _lengths(samples: int, random: np.random.Generator) -> list[int]:
    """A log's samples dealt out to runs; the last takes what would be too few for one more."""
    dealt = []
    while samples >= _FEWEST + _MOST:
        dealt.append(int(random.integers(_FEWEST, _MOST, endpoint=True)))
        samples -= dealt[-1]
    return [*dealt, samples] if samples else dealt


def _run(intervals: int, random: np.random.Generator) -> _Run:
    """Rises, stays with some noise, drops now and then; one run in eight drifts."""
    threads, message_bytes = int(random.choice(_THREADS)), int(random.choice(_BYTES))
    persistent = bool(random.random() < 0.5)
    most = random.uniform(30_000, 50_000) / (1 + message_bytes / 8192) * (0.3 if persistent else 1)
    level = most * threads / (threads + 8)
    rates = level * (1 + random.uniform(0.005, 0.03) * random.standard_normal(intervals, np.float32))
    rising = min(int(random.integers(3, 12)), intervals)
    rates[:rising] *= np.arange(1, rising + 1) / (rising + 1)
    rates[random.integers(0, intervals, intervals // 400)] *= 0.6
    if random.random() < 1 / 8:
        rates *= np.linspace(1, random.choice((0.85, 1.15)), intervals)
    return _Run(threads, message_bytes, persistent, np.maximum(rates, 0).astype(np.int64))


def _interval_lines(rates: npt.NDArray[np.int64], threads: int) -> bytes:
    """`rate=2461.00,threads=16` per rate, of all rates at once: a table of characters with a row per line,
    from which the leading zeros are left out."""
    pattern = b"rate=" + b"0" * _DIGITS + f".00,threads={threads}\n".encode()
    lines = np.tile(np.frombuffer(pattern, np.uint8), (len(rates), 1))
    kept = np.ones(lines.shape, bool)
    left = rates
    for column in range(4 + _DIGITS, 4, -1):
        # of a rate of 0 one digit stays
        kept[:, column] = (left > 0) | (column == 4 + _DIGITS)
        left, digit = np.divmod(left, 10)
        lines[:, column] += digit.astype(np.uint8)
    return lines[kept].tobytes()
