"""Every kind of damage is found and named, never read as an empty or an older table, and repaired."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from features.damage import Damaged
from features.lake import Lake, NoSuchTable, NoSuchVersion, data_files, noted
from features.repairing import damages, repair, repair_of
from twin.core.tables import FINDINGS

from ..a_finding import ROW


@pytest.fixture
def lake(settings):
    return Lake(settings)


@pytest.fixture
def table(lake, commit):
    """Three versions; version N has the line N. All of the log is needed: no checkpoint stands for a part."""
    for line in range(3):
        commit(lake, FINDINGS, ROW | {"line": line})
    folder = Path(lake.uri(FINDINGS).removeprefix("file://"))
    for file in folder.glob("_delta_log/*checkpoint*"):
        file.unlink()
    files, sums = lake.files(FINDINGS), lake.files(FINDINGS).sums()
    kept = {name: digest for name, digest in sums.digests.items() if "checkpoint" not in name}
    files.note(replace(sums, digests=kept))
    return folder


def entry(table, version):
    return table / "_delta_log" / f"{version:020}.json"


def data_file(table, version=None):
    (name,) = data_files(DeltaTable(table, version=version))
    return table / name


def cut(path):
    path.write_bytes(path.read_bytes()[:-30])


def flip(path, place=0.5):
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 0x08
    path.write_bytes(bytes(content))


def other_path(path):
    path.write_text(path.read_text().replace("write-", "wrote-", 1))


def with_checkpoint(table, harm):
    DeltaTable(table).create_checkpoint()
    harm(table / "_delta_log")


DAMAGE = {
    "the last entry is empty": (lambda t: entry(t, 2).write_text(""), "is empty"),
    "the last entry is cut": (lambda t: cut(entry(t, 2)), "is not JSON"),
    "the last entry is no JSON": (lambda t: entry(t, 2).write_text("{"), "is not JSON"),
    "the last entry is gone": (lambda t: entry(t, 2).unlink(), "is missing"),
    "the last entry was changed": (lambda t: other_path(entry(t, 2)), "is not what was written"),
    "an entry in the middle is gone": (lambda t: entry(t, 1).unlink(), "is missing"),
    "an entry in the middle is empty": (lambda t: entry(t, 1).write_text("\n"), "is empty"),
    "the first entry is gone": (lambda t: entry(t, 0).unlink(), "is missing"),
    "the whole log is gone": (lambda t: shutil.rmtree(t / "_delta_log"), "is missing"),
    "the data file is gone": (lambda t: data_file(t).unlink(), "is missing"),
    "the data file is empty": (lambda t: data_file(t).write_bytes(b""), "has 0 bytes"),
    "the data file is cut": (lambda t: cut(data_file(t)), "bytes instead of"),
    "a bit of the data file is flipped": (lambda t: flip(data_file(t)), "is not what was written"),
    "a bit of the first page is flipped": (lambda t: flip(data_file(t), 0.05), "is not what was written"),
    "the checkpoint is cut": (
        lambda t: with_checkpoint(t, lambda log: cut(next(log.glob("*.checkpoint.parquet")))),
        "cannot be read",
    ),
    "the checkpoint is gone": (
        lambda t: with_checkpoint(t, lambda log: next(log.glob("*.checkpoint.parquet")).unlink()),
        "is missing",
    ),
    "the hint is no JSON": (
        lambda t: with_checkpoint(t, lambda log: (log / "_last_checkpoint").write_text("{")),
        "is not the JSON",
    ),
}
# what is left afterwards: the line of the newest sound version, or nothing
LEFT = {
    "an entry in the middle is gone": 0,
    "an entry in the middle is empty": 0,
    "the first entry is gone": None,
    "the whole log is gone": None,
    "the checkpoint is cut": 2,
    "the checkpoint is gone": 2,
    "the hint is no JSON": 2,
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_at_every_read_and_repaired(lake, table, kind):
    harm, what = DAMAGE[kind]
    harm(table)
    for read in (lake.arrow, lake.pandas, lambda t: lake.columns(t, "line"), lake.readable):
        with pytest.raises(Damaged, match=rf"table findings is damaged: \S+ .*{what}.*twin repair findings"):
            read(FINDINGS)
    plan = repair_of(lake, FINDINGS)
    assert [what in str(one) for one in plan.damages] == [True]
    before = {one.name for one in table.rglob("*") if one.is_file()}
    place = Path(repair(lake, FINDINGS, plan))
    left = LEFT.get(kind, 1)
    if left is None:
        with pytest.raises(NoSuchTable):
            lake.arrow(FINDINGS)
    else:
        assert lake.pandas(FINDINGS)["line"].tolist() == [left]
        assert damages(lake, FINDINGS) == []
        assert lake.written(FINDINGS).rows == 1
    # nothing was deleted
    kept = {one.name for folder in (table, place) if folder.exists() for one in folder.rglob("*")}
    assert before <= kept


def test_an_old_entry_that_a_checkpoint_stands_for_costs_nothing(lake, table, commit):
    DeltaTable(table).create_checkpoint()
    commit(lake, FINDINGS, ROW | {"line": 3})
    entry(table, 1).unlink()
    assert lake.pandas(FINDINGS)["line"].tolist() == [3]
    assert damages(lake, FINDINGS) == []
    with pytest.raises(NoSuchVersion, match="version 1"):
        lake.arrow(FINDINGS, version=1)


def test_the_spark_reader_refuses_too(lake, table, spark):
    flip(data_file(table))
    with pytest.raises(Damaged, match="is not what was written"):
        lake.spark(FINDINGS, spark)


def test_without_digests_a_flipped_bit_in_a_page_is_still_found(lake, table):
    (table / "_sums.json").unlink()
    file = data_file(table)
    flip(file, 0.05)
    with pytest.raises(Damaged, match="cannot be read"):
        lake.arrow(FINDINGS)
    assert damages(lake, FINDINGS)[0].file == str(file.relative_to(table))


def test_damaged_digests_accuse_nobody(lake, table):
    told = json.loads((table / "_sums.json").read_text())
    told["digests"] = dict.fromkeys(told["digests"], "0" * 64)
    (table / "_sums.json").write_text(json.dumps(told))
    assert lake.pandas(FINDINGS)["line"].tolist() == [2]
    assert damages(lake, FINDINGS) == []


def test_a_damaged_older_version_keeps_nobody_from_the_newest(lake, table):
    data_file(table, 0).unlink()
    assert lake.pandas(FINDINGS)["line"].tolist() == [2]
    with pytest.raises(NoSuchVersion, match="version 0 of table findings is gone"):
        lake.arrow(FINDINGS, version=0)


def test_a_repaired_table_goes_on(lake, table, commit):
    entry(table, 2).write_text("")
    repair(lake, FINDINGS, repair_of(lake, FINDINGS))
    assert commit(lake, FINDINGS, ROW | {"line": 7}) == 2
    assert lake.pandas(FINDINGS)["line"].tolist() == [7]
    assert lake.pandas(FINDINGS, version=1)["line"].tolist() == [1]


def test_a_version_may_be_chosen_and_its_fingerprint_comes_with_it(lake, table):
    first = noted(lake.delta(FINDINGS, 0))["brokertwin.fingerprint"]
    plan = repair_of(lake, FINDINGS, to=0)
    assert (plan.damages, plan.version, list(plan.lost)) == ((), 0, [1, 2])
    repair(lake, FINDINGS, plan)
    assert lake.pandas(FINDINGS)["line"].tolist() == [0]
    assert lake.written(FINDINGS).fingerprint == first
    with pytest.raises(NoSuchVersion, match="version 9"):
        repair_of(lake, FINDINGS, to=9)


def test_when_no_version_is_sound_the_table_begins_anew(lake, table, commit):
    for version in range(3):
        flip(data_file(table, version))
    plan = repair_of(lake, FINDINGS)
    assert plan.version is None
    repair(lake, FINDINGS, plan)
    with pytest.raises(NoSuchTable):
        lake.arrow(FINDINGS)
    assert commit(lake, FINDINGS, ROW) == 0
