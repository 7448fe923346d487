"""The steps between the inbox and the models: what goes before what, and when there is nothing to do."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from features.lake import Lake
from twin.app import pipeline
from twin.app.ingesting import Found, files_to_read, read_and_stage, write_bronze
from twin.app.landing import Landing
from twin.app.pipeline import NothingToDo
from twin.core.tables import DOCUMENTS, FIGURES

CSV = (
    "metric,value,published_at,family,os,machine,cpus,product,version,queue_managers,rules_engines,"
    "failed_over,message_bytes,persistent,messages_per_commit\n"
    "throughput_msgs_per_s,{rate},2026-01-01,rules_hub,solaris,Sun E4500,4,MQSI,1.1,1,1,false,1024,true,1\n"
)


@pytest.fixture
def drop(settings):
    landing = Landing(settings)
    landing.open()

    def into_inbox(name, content, sidecar=None):
        for path, text in ((landing.inbox / name, content), (landing.inbox / f"{name}.yaml", sidecar)):
            if text is not None:
                path.write_text(text)
                os.utime(path, (time.time() - 60,) * 2)

    return into_inbox


def read_all(settings, kind="harness"):
    return [read_and_stage(settings, found)["staged"] for found in files_to_read(settings, kind)]


@pytest.fixture
def no_spark(monkeypatch):
    def started(*_):
        raise AssertionError("Spark was started")

    return lambda: monkeypatch.setattr("features.session.running_spark", started)


def test_a_write_that_is_repeated_changes_nothing_and_starts_no_spark(settings, spark, drop, no_spark):
    drop("ours.csv", CSV.format(rate=7))
    first = write_bronze(settings, read_all(settings), library=False)
    assert first.changed
    no_spark()
    drop("ours.csv", CSV.format(rate=7))
    again = write_bronze(settings, read_all(settings), library=False)
    assert (again.version, again.changed) == (first.version, False)
    assert Landing(settings).counts()["waiting"] == 0


def test_a_try_that_was_killed_before_it_moved_the_file_is_finished(settings, spark, drop, monkeypatch):
    drop("ours.csv", CSV.format(rate=7))
    staged = read_all(settings)
    with monkeypatch.context() as patch:
        patch.setattr(Landing, "done", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write_bronze(settings, staged, library=False)
    assert not write_bronze(settings, staged, library=False).changed
    assert Landing(settings).counts() == {"waiting": 0, "processed": 1, "refused": 0}
    assert Lake(settings).written(FIGURES).rows == 1


def test_of_two_files_with_one_source_the_other_is_refused(settings, spark, drop):
    drop("a.csv", CSV.format(rate=1), "source: same\n")
    drop("b.csv", CSV.format(rate=2), "source: same\n")
    write_bronze(settings, read_all(settings), library=False)
    assert Landing(settings).refusals() == {"a.csv": "another file that came with it is harness-same"}


def test_the_library_gives_way_to_what_landed(settings, spark, reports_dir, drop):
    hub = "mqsi-v11-solaris"
    drop("edition.txt", (reports_dir / f"{hub}.txt").read_text(encoding="utf-8") + "\na later edition\n")
    landed = read_all(replace(settings, reports=None), "report")
    write_bronze(settings, landed, library=True)
    library = [read_and_stage(settings, Found(str(reports_dir / f"{hub}.txt"), landed=False))["staged"]]
    assert not write_bronze(settings, library, library=True).changed
    cards = {card["source_id"]: card for card in Lake(settings).arrow(DOCUMENTS).to_pylist()}
    assert len(cards) == 5
    assert (cards[hub]["landed"], cards[hub]["document_name"]) == (True, "edition.txt")


def test_nothing_to_ingest_is_told(settings):
    with pytest.raises(NothingToDo, match="no file waits"):
        pipeline.ingest_files(settings, [], library=False)


def test_requests_wait_for_a_model(settings, drop):
    drop("ask.jsonl", json.dumps({"family": "rules_hub"}) + "\n")
    with pytest.raises(NothingToDo, match="1 request files wait for a model"):
        pipeline.answer_requests(settings)
    assert Landing(settings).waiting("requests") == ["ask.jsonl"]


def test_without_figures_there_is_no_quality_to_report(settings):
    with pytest.raises(NothingToDo, match="nothing has been validated"):
        pipeline.quality_report(settings)


NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def trained(monkeypatch):
    """A registry whose newest version was made so long ago, of the same or of other figures."""

    def known(ago, same):
        newest = None
        if ago is not None:
            stamp = int((NOW - ago).timestamp() * 1000)
            newest = SimpleNamespace(version="4", creation_timestamp=stamp)
        registry = SimpleNamespace(newest=lambda: newest, with_key=lambda _: newest if same else None)
        monkeypatch.setattr("training.registry.Registry", lambda _: registry)
        monkeypatch.setattr("training.training.training_key", lambda _: "key")

    return known


def test_the_first_training_is_due_at_once(settings, trained):
    trained(None, same=False)
    assert pipeline.training_due(settings, NOW) == "nothing has been trained yet"


def test_changed_figures_are_learned_after_a_day(settings, trained):
    trained(timedelta(hours=25), same=False)
    assert pipeline.training_due(settings, NOW) == "figures or code have changed"


def test_a_second_training_on_one_day_waits(settings, trained):
    trained(timedelta(hours=5), same=False)
    with pytest.raises(NothingToDo, match=r"5\.0 hours ago"):
        pipeline.training_due(settings, NOW)
    assert pipeline.training_due(replace(settings, train_every_h=4), NOW)


def test_what_was_learned_is_not_learned_again(settings, trained):
    trained(timedelta(days=3), same=True)
    with pytest.raises(NothingToDo, match="version 4 has learned from these figures"):
        pipeline.training_due(settings, NOW)


def test_a_week_is_long_enough_in_any_case(settings, trained):
    trained(timedelta(days=8), same=True)
    assert pipeline.training_due(settings, NOW) == "the last training was 8 days ago"


def test_there_is_nothing_to_train_on_an_empty_lake(settings):
    with pytest.raises(NothingToDo, match="nothing to learn from yet"):
        pipeline.training_due(settings)
