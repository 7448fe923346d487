"""Several writers at once, while others read."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from features.lake import Lake, NoSuchTable
from twin.app.landing import Landing
from twin.core.tables import FIGURES

from ..recording import record
from .homes import ROWS, drop_figures, looked_at, settings_of
from .killing import run_step

WRITERS, FILES = 3, 6


def test_writers_at_once_lose_nothing_and_readers_never_fail(tmp_path):
    """All writers find the same files waiting, and each tries to take them all."""
    home = tmp_path / "home"
    home.mkdir()
    settings, done, counted = settings_of(home), threading.Event(), Counter()
    sources = {drop_figures(settings, number) for number in range(FILES)}

    def read():
        while not done.is_set():
            try:
                rows = len(Lake(settings).pandas(FIGURES))
            except NoSuchTable:
                continue
            counted.update(reads=1, partial=rows % ROWS != 0)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with ThreadPoolExecutor(WRITERS) as pool:
            ended = list(
                pool.map(lambda one: run_step("ingest", home, tmp_path / f"{one}.log"), range(WRITERS))
            )
    finally:
        done.set()
        reader.join()
    # one that comes too late finds nothing left, or a file that another has just taken; it may say so and
    # fail, as a task would, and be tried again
    again = run_step("ingest", home, tmp_path / "again.log")
    assert again.code == 0, again.printed
    seen = looked_at(settings, sources)
    record(
        "writers",
        "make faults",
        "Writers at once",
        {
            "writers that want the same files": WRITERS,
            "of them done at once": sum(one.code == 0 for one in ended),
            "files": FILES,
            "reads meanwhile": counted["reads"],
            "reads that failed or saw a part": counted["partial"],
            "rows lost": seen.lost,
            "rows twice": seen.twice,
        },
    )
    assert (seen.lost, seen.twice, counted["partial"]) == (0, 0, 0)
    assert len(Lake(settings).pandas(FIGURES)) == FILES * ROWS
    assert Landing(settings).counts() == {"waiting": 0, "processed": 2 * FILES, "refused": 0}
    assert any(one.code == 0 for one in ended)
