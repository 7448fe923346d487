"""kill -9, at moments drawn with a seed, of ingest, validation, training and answering. After each kill every
table is readable and nothing that was acknowledged is lost; the work is simply done again, and leaves what
it leaves where nobody is killed."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest

from ..recording import record
from .homes import looked_at, settings_of
from .killing import Moment, run_step

SEED = 1009
# with the ten of serving, fifty
KILLS = {"ingest": 12, "validate": 6, "train": 10, "predict": 12}
# a moment that comes after the step has ended is drawn again
_MOST_MISSED = 30


@pytest.fixture(scope="module")
def tally():
    """What all steps counted together."""
    return Counter(), time.monotonic()


@pytest.mark.parametrize("step", KILLS)
def test_killed_at_any_moment_and_done_again_it_leaves_the_same(step, stages, tally, tmp_path):
    stage, counted, draw = stages[step], tally[0], random.Random(f"{SEED} {step}")
    settings = stage.put_back()
    kills = missed = 0
    while kills < KILLS[step]:
        moment = Moment.drawn(draw, stage.usual.seconds, stage.usual.commits)
        counted.update(begun=1)
        ended = run_step(step, stage.home, tmp_path / "log", moment)
        seen = looked_at(settings, stage.sources)
        counted.update(ended=1, looks=seen.tables, lost=seen.lost, twice=seen.twice)
        assert (seen.lost, seen.twice) == (0, 0), (moment, ended)
        if ended.killed:
            kills += 1
            counted.update({step: 1, "between": 0 < ended.commits < stage.usual.commits})
            print(f"{step}: {moment.victim} killed after {ended.seconds:.1f} s, {ended.commits} commits")
            continue
        missed += 1
        assert missed < _MOST_MISSED, "the moments come too late"
        assert ended.code == 0, ended.printed
        counted.update(unlike=stage.result(settings) != stage.expected)
        assert not counted["unlike"], step
        stage.put_back()
    last = run_step(step, stage.home, tmp_path / "log")
    assert last.code == 0, last.printed
    counted.update(unlike=stage.result(settings_of(stage.home)) != stage.expected)
    assert not counted["unlike"], step


def test_all_of_it_is_recorded(tally):
    counted, began = tally
    assert counted["begun"], "nothing was tried"
    kills = {step: counted[step] for step in KILLS}
    record(
        "kills",
        "make faults",
        "kill -9 of ingest, validation, training and answering",
        {
            "kills": sum(kills.values()),
            **{f"of {step}": count for step, count in kills.items()},
            "of them between two commits": counted["between"],
            "tables read whole afterwards": counted["looks"],
            "rows lost": counted["lost"],
            "rows twice": counted["twice"],
            "steps begun": counted["begun"],
            "of them that hung": counted["begun"] - counted["ended"],
            "results unlike those without a kill": counted["unlike"],
            "minutes": round((time.monotonic() - began) / 60, 1),
        },
    )
    assert kills == KILLS
