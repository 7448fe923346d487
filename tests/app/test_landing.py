"""Files that arrive: which are picked up, where they go, and that a name is never a path."""

from __future__ import annotations

import json
import os
import time

import pytest

from twin.app import landing as zone
from twin.app.ingesting import Found, files_to_read, read_and_stage
from twin.app.landing import Landing, NoSuchArrival
from twin.sources.documents import Refused

REQUEST = json.dumps({"family": "rules_hub"}) + "\n"


@pytest.fixture
def landing(settings):
    landing = Landing(settings)
    landing.open()
    return landing


@pytest.fixture
def dropped(landing):
    """Puts a file into the inbox that has been there for a minute."""

    def drop(name, content=REQUEST):
        path = landing.inbox / name
        path.write_text(content)
        past = time.time() - 60
        os.utime(path, (past, past))
        return path

    return drop


def test_a_file_is_known_by_what_stands_in_it(landing, dropped):
    dropped("report.txt", "some text")
    dropped("asked.jsonl")
    dropped("asked.csv", "family,cpus\nrules_hub,4\n")
    dropped("measured.csv", "metric,value,family\nthroughput_msgs_per_s,1,rules_hub\n")
    dropped("strange.bin", "what is this")
    assert landing.waiting("report") == ["report.txt"]
    assert landing.waiting("requests") == ["asked.csv", "asked.jsonl"]
    assert landing.waiting("harness") == ["measured.csv", "strange.bin"]


def test_a_file_that_was_just_touched_is_not_picked_up(landing):
    (landing.inbox / "asked.jsonl").write_text(REQUEST)
    assert landing.waiting("requests") == []


def test_a_file_that_somebody_writes_to_is_not_picked_up(landing, dropped):
    path = dropped("asked.jsonl")
    with path.open("a"):
        assert landing.waiting("requests") == []
    assert landing.waiting("requests") == ["asked.jsonl"]


@pytest.mark.parametrize("name", [".hidden.jsonl", "asked.jsonl.part", "asked.jsonl.tmp", "asked.jsonl~"])
def test_names_of_unfinished_files_are_passed_over(landing, dropped, name):
    dropped(name)
    assert all(not landing.waiting(kind) for kind in ("report", "harness", "requests"))


def test_a_file_waits_for_its_description(landing, dropped):
    dropped("results.csv", "# Persistence, Msg Size, Threads, Rate (RT/s)\n1,2048,1,99\n")
    (landing.inbox / "results.csv.yaml").write_text("os: linux\n")
    assert landing.waiting("harness") == []


def test_links_and_folders_are_left_alone(landing, dropped, tmp_path):
    secret = tmp_path / "secret.jsonl"
    secret.write_text(REQUEST)
    (landing.inbox / "link.jsonl").symlink_to(secret)
    (landing.inbox / "folder.jsonl").mkdir()
    assert landing.waiting("requests") == []
    with pytest.raises(NoSuchArrival):
        landing.path("link.jsonl")


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/hostname", "folder/file.txt", "..", ".", ""])
def test_a_name_cannot_leave_the_inbox(landing, settings, name):
    (settings.home / "secret.txt").write_text("secret")
    with pytest.raises(NoSuchArrival):
        landing.path(name)
    with pytest.raises(NoSuchArrival):
        read_and_stage(settings, Found(name, landed=True))


def test_a_processed_file_takes_its_description_along(landing, dropped):
    dropped("results.csv", "x")
    dropped("results.csv.yaml", "os: linux\n")
    landing.done(landing.arrival("results.csv"))
    assert sorted(path.name for path in landing.processed.iterdir()) == ["results.csv", "results.csv.yaml"]
    assert list(landing.inbox.iterdir()) == []


def test_the_next_file_of_a_name_does_not_overwrite_the_first(landing, dropped):
    for content in ("one", "two", "two"):
        dropped("asked.jsonl", content)
        landing.done(landing.arrival("asked.jsonl"))
    kept = sorted(path.read_text() for path in landing.processed.iterdir())
    assert kept == ["one", "two"]
    assert (landing.processed / "asked.jsonl").read_text() == "one"


def test_a_file_that_changed_while_it_was_read_stays(landing, dropped):
    dropped("asked.jsonl", "one")
    seen = landing.arrival("asked.jsonl")
    dropped("asked.jsonl", "two")
    landing.done(seen)
    assert (landing.inbox / "asked.jsonl").read_text() == "two"


def test_done_twice_is_done(landing, dropped):
    dropped("asked.jsonl")
    seen = landing.arrival("asked.jsonl")
    landing.done(seen)
    landing.done(seen)
    assert landing.counts() == {"waiting": 0, "processed": 1, "refused": 0}


def test_a_refused_file_has_the_reason_beside_it(landing, settings, dropped):
    dropped("strange.csv", "a,b\n1,2\n")
    (found,) = files_to_read(settings, "harness")
    with pytest.raises(Refused):
        read_and_stage(settings, found)
    assert landing.counts() == {"waiting": 0, "processed": 0, "refused": 1}
    assert (landing.refused / "strange.csv").is_file()
    assert "strange.csv" in landing.refusals()
    assert (landing.refused / "strange.csv.reason.txt").read_text().strip()


def test_where_leases_are_unknown_the_time_decides(landing, dropped, monkeypatch):
    monkeypatch.setattr(zone, "_is_being_written", lambda _: False)
    dropped("asked.jsonl")
    assert landing.waiting("requests") == ["asked.jsonl"]
