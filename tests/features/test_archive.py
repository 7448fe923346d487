"""Files of runs on Spark: samples, runs, and what happens to bad, repeated and interrupted ones."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from features import archive as archive_module
from features.archive import read_archive
from features.footers import extremes
from features.lake import Lake
from twin.app import archiving
from twin.app.archiving import take_runs, tidy
from twin.core.fields import Field
from twin.core.tables import DOCUMENTS, RUNS, SAMPLES

DESCRIPTION = "os: linux\nmachine: box\ncpus: 4\nproduct: IBM MQ\nversion: 9.4\nmeasured_at: 2026-05-06\n"


def log(level: float, threads: int = 4, intervals: int = 12) -> str:
    rates = [level * (1 + 0.01 * (at % 3)) for at in range(intervals)]
    total = sum(rates)
    return (
        f"./cph -nt {threads} -ms 2048 -tc Requester -ss 1\n"
        + "".join(f"rate={rate:.2f},threads={threads}\n" for rate in rates)
        + f"totalIterations={total:.0f},totalSeconds={intervals}.00,avgRate={total / intervals:.2f}\n"
    )


@pytest.fixture
def archive(tmp_path):
    folder = tmp_path / "archive"
    folder.mkdir()
    (folder / "archive.yaml").write_text(DESCRIPTION)

    def written(**files: str | bytes) -> list[Path]:
        for name, text in files.items():
            (folder / f"{name}.log").write_bytes(text if isinstance(text, bytes) else text.encode())
        return sorted(folder.glob("*.log"))

    return written


@pytest.fixture
def take(settings, spark, monkeypatch):
    """Without the expectations, which have tests of their own and take their time."""
    monkeypatch.setattr(archiving, "_verdict", lambda *_: "passed")
    lake = Lake(settings)

    def taken(files):
        with lake.exclusive():
            return take_runs(settings, lake, spark, files)

    return lake, taken


def test_bad_files_cost_nothing_but_themselves(spark, settings, archive):
    files = archive(
        good=log(1000), other=log(2000) + log(3000, 8), binary=b"\x00\x01", latin=b"caf\xe9 rate=1",
        words="hello\n", cut=log(500)[:100],
    )  # fmt: skip
    found = read_archive(spark, Lake(settings).uri(SAMPLES), [*files, files[0].with_name("gone.log")], "b")
    assert {Path(path).stem for path in found.refused} == {"binary", "latin", "words", "gone"}
    assert "not UTF-8 text (line 1, byte 3)" in next(
        reason for path, reason in found.refused.items() if "latin" in path
    )
    runs = found.runs.to_pylist()
    assert sorted((run["document_name"], run["run"], run["verdict"]) for run in runs) == [
        ("cut.log", 1, "too_short"), ("good.log", 1, "stable"), ("other.log", 1, "stable"),
        ("other.log", 2, "stable"),
    ]  # fmt: skip
    assert sum(file.rows for file in found.samples) == sum(run["samples"] for run in runs)


def test_samples_and_runs_are_tables_with_origins(take, archive):
    lake, taken = take
    told = taken(archive(one=log(1000)))
    assert (told.runs, told.samples, told.expectations) == (1, 12, "passed")
    samples = lake.arrow(SAMPLES).to_pylist()
    assert [row["line"] for row in samples] == list(range(2, 14))
    assert {(row["tool"], row["month"], row["source_id"]) for row in samples} == {
        ("mqcph", "2026-05", "harness-ibm-mq-box")
    }
    (run,) = lake.arrow(RUNS).to_pylist()
    assert (run["configuration_id"] is not None, run["clients"], run["samples"]) == (True, 4, 12)
    (card,) = lake.arrow(DOCUMENTS).to_pylist()
    assert (card["source_id"], card["machines"], card["products"]) == ("harness-ibm-mq-box", "box", "IBM MQ")


def test_the_same_content_counts_once_whenever_and_under_whatever_name(take, archive):
    lake, taken = take
    told = taken(archive(one=log(1000), copy=log(1000), two=log(2000)))
    assert (told.runs, len(told.known)) == (2, 1)
    before = lake.version(SAMPLES), lake.version(RUNS)
    again = taken(archive(third=log(1000)))
    assert (again.runs, len(again.known)) == (0, 4)
    assert (lake.version(SAMPLES), lake.version(RUNS)) == before


def test_copies_in_other_folders_count_once(take, archive):
    lake, taken = take
    (one,) = archive(one=log(1000))
    other = one.parent / "copies"
    other.mkdir()
    (other / "archive.yaml").write_text(DESCRIPTION)
    (other / one.name).write_bytes(one.read_bytes())
    told = taken([one, other / one.name])
    assert (told.runs, told.known) == (1, [str(other / one.name)])
    assert lake.arrow(SAMPLES).num_rows == 12


def test_what_no_importer_thought_of_costs_one_file(settings, archive, monkeypatch):
    files = archive(bad=log(1000), good=log(2000))
    work = archive_module._Work(Lake(settings).uri(SAMPLES), "b", frozenset(), None, date(2026, 11, 1))
    known = archive_module.read_runs

    def broken(file, *rest):
        return 1 / 0 if file.stem == "bad" else known(file, *rest)

    monkeypatch.setattr(archive_module, "read_runs", broken)
    (row,) = work.done(0, files).to_pylist()
    outcome = json.loads(row["outcome"])
    assert list(outcome["refused"].values()) == [
        "bad.log cannot be read: ZeroDivisionError: division by zero"
    ]
    assert [file["rows"] for file in outcome["samples"]] == [12]


def test_a_file_with_another_description_takes_the_place_of_what_it_gave(take, archive):
    lake, taken = take
    (one, *_) = archive(one=log(1000), two=log(2000))
    taken(archive())
    one.with_name("one.log.yaml").write_text("cpus: 16\n")
    assert taken(archive()).runs == 1
    assert sorted(run["cpus"] for run in lake.arrow(RUNS).to_pylist()) == [4, 16]
    assert lake.arrow(SAMPLES).num_rows == 24


def test_samples_of_a_work_that_was_killed_are_taken_back(take, archive, monkeypatch):
    lake, taken = take
    taken(archive(one=log(1000)))
    files = archive(two=log(2000))
    with monkeypatch.context() as patch:
        patch.setattr(Lake, "replace_parts", lambda *_: os.kill(os.getpid(), 0) or 1 / 0)
        with pytest.raises(ZeroDivisionError):
            taken(files)
    assert lake.arrow(SAMPLES).num_rows == 24
    assert lake.arrow(RUNS).num_rows == 1
    assert taken(files).runs == 1
    assert lake.arrow(SAMPLES).num_rows == 24
    assert lake.arrow(RUNS).num_rows == 2


def test_the_first_samples_of_all_are_taken_back_too(take, archive, monkeypatch):
    lake, taken = take
    with monkeypatch.context() as patch:
        patch.setattr(Lake, "replace_parts", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            taken(archive(one=log(1000)))
    assert taken(archive()).runs == 1
    assert lake.arrow(SAMPLES).num_rows == 12


def test_a_new_column_rewrites_nothing(take, archive, monkeypatch, spark):
    lake, taken = take
    taken(archive(one=log(1000)))
    (before,) = lake.delta(SAMPLES).file_uris()
    wider = replace(
        SAMPLES, fields=(*SAMPLES.fields, Field("jitter_ms", "number", "New", "ms", nullable=True))
    )
    monkeypatch.setattr(archiving, "SAMPLES", wider)
    taken(archive(two=log(2000)))
    assert before in lake.delta(wider).file_uris()
    rows = lake.spark(wider, spark)
    assert rows.where("jitter_ms IS NULL").count() == 24
    assert set(lake.arrow(wider).column("jitter_ms").to_pylist()) == {None}


def test_the_extremes_of_files_stand_for_all_their_rows(take, archive, spark, settings):
    lake, _ = take
    found = read_archive(spark, lake.uri(SAMPLES), archive(one=log(1000), two=log(50, 2)), "b")
    told = extremes(lake, SAMPLES, found.samples)
    rates = [rate for rate in told["rate_msgs_per_s"].to_pylist() if rate is not None]
    assert (min(rates), max(rates)) == (50.0, 1020.0)
    assert set(told["tool"].to_pylist()) == {"mqcph"}
    assert None not in told["document_id"].to_pylist()
    assert set(told["latency_p99_ms"].to_pylist()) == {None}


def test_small_files_are_put_together_and_old_samples_go_while_their_runs_stay(take, archive):
    lake, taken = take
    for at in range(3):
        taken(archive(**{f"run{at}": log(1000 + at)}))
    assert len(lake.delta(SAMPLES).file_uris()) == 3
    assert tidy(lake)["files_fewer"] == 2
    assert lake.arrow(SAMPLES).num_rows == 36
    # nothing that was put together looks like a work that was killed
    assert taken(archive(last=log(5000))).runs == 1
    assert tidy(lake, keep_months=6, today=date(2026, 11, 30))["samples_removed"] == 0
    assert tidy(lake, keep_months=6, today=date(2026, 12, 1))["samples_removed"] == 48
    assert lake.arrow(SAMPLES).num_rows == 0
    assert lake.arrow(RUNS).num_rows == 4
    assert len(taken(archive()).known) == 4
